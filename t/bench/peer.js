// peer.js PIPES MB PROGRAM ARGUMENT... - for each line "N" that it reads, N starts by
// child_process.spawn, one after the other, and a line "NS BLOCKED-NS" for each.
'use strict';
const { spawn } = require('child_process');
const lines = require('readline').createInterface({ input: process.stdin });
const now = process.hrtime.bigint;

const [pipes, mb, program, ...rest] = process.argv.slice(2);
const memory = globalThis.memory = [];
for (let i = 0; i < mb / 256; i++)
  memory.push(Buffer.alloc(Math.min(256, mb - 256 * i) << 20, 1));
const stdio = ['inherit', 'inherit', 'inherit'];
if (pipes >= 1) stdio[1] = 'pipe';
if (pipes == 3) stdio[0] = stdio[2] = 'pipe';

function start(done) {
  const begin = now();
  const child = spawn(program, rest, { stdio });
  const started = now();
  let said = 0;
  if (child.stdin) child.stdin.end();
  if (child.stdout) child.stdout.on('data', (data) => { said += data.length; });
  if (child.stderr) child.stderr.resume();
  child.on('error', (error) => { throw error; });
  child.on('close', (status) => {
    const end = now();
    if (status !== 0 || said !== (pipes >= 1 ? 1 : 0)) throw Error('it said something else');
    done(`${end - begin} ${started - begin}\n`);
  });
}

function starts(n, text) {
  if (n > 0) start((line) => starts(n - 1, text + line));
  else process.stdout.write(text);
}

lines.on('line', (line) => starts(Number(line), ''));

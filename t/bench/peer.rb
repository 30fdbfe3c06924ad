# peer.rb PIPES MB PROGRAM ARGUMENT... - for each line "N" that it reads, N starts by
# Process.spawn, IO.popen or Open3, and a line "NS BLOCKED-NS" for each.
require 'open3'

pipes, mb, *argv = ARGV
PIPES = pipes.to_i
MEMORY = "\1" * (mb.to_i << 20)
COMMAND = [[argv[0], argv[0]], *argv[1..]].freeze

def now
  Process.clock_gettime(Process::CLOCK_MONOTONIC, :nanosecond)
end

def start
  begins = now
  case PIPES
  when 0
    pid = Process.spawn(*COMMAND)
    started = now
    _, status = Process.wait2(pid)
    said = ''
  when 1
    io = IO.popen(COMMAND)
    started = now
    said = io.read
    io.close
    status = $?
  else
    input, out, err, thread = Open3.popen3(*COMMAND)
    started = now
    input.close
    said = out.read
    err.read
    status = thread.value
    out.close
    err.close
  end
  ends = now
  raise 'the program said something else' unless status.success? && said.size == [PIPES, 1].min
  "#{ends - begins} #{started - begins}\n"
end

$stdin.each_line do |line|
  print Array.new(line.to_i) { start }.join
  $stdout.flush
end

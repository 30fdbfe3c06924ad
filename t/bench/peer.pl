# peer.pl PIPES MB PROGRAM ARGUMENT... - for each line "N" that it reads, N starts by
# system, open or IPC::Open3, and a line "NS BLOCKED-NS" for each (0: not known).
use strict;
use warnings;
use IPC::Open3;
use Symbol 'gensym';
use Time::HiRes qw(clock_gettime CLOCK_MONOTONIC);

my ($pipes, $mb, @argv) = @ARGV;
my $memory = "\1" x ($mb << 20);
$| = 1;

sub now { int(1e9 * clock_gettime(CLOCK_MONOTONIC)) }

sub start {
	my ($begin, $started, $said) = (now(), 0, '');
	if ($pipes == 0) {
		system { $argv[0] } @argv;
	} elsif ($pipes == 1) {
		open(my $out, '-|', @argv) or die "$argv[0]: $!";
		$started = now();
		$said = join '', <$out>;
		close $out;
	} else {
		my $pid = open3(my $in, my $out, my $err = gensym, @argv);
		$started = now();
		close $in;
		$said = join '', <$out>;
		my $rest = join '', <$err>;
		waitpid $pid, 0;
	}
	my $end = now();
	die 'the program said something else' if $? || length $said != ($pipes > 0);
	return sprintf "%d %d\n", $end - $begin, $started ? $started - $begin : 0;
}

while (my $line = <STDIN>) {
	print map { start() } 1 .. $line;
}

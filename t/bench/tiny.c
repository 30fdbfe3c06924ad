/* tiny.c - the program that every peer starts: it says a byte if it has an argument,
   and ends.

   _start is weak: linked with -nostdlib it is the entry and falls into main; linked
   with a C library it gives way to crt1's, which calls main. */
#if defined __x86_64__

__asm__("	.weak _start\n"
	"	.globl main\n"
	"_start:	mov (%rsp), %rdi\n"
	"main:	cmp $1, %edi\n"
	"	je 1f\n"
	"	mov $1, %eax\n" /* write(1, stack, 1) */
	"	mov $1, %edi\n"
	"	mov %rsp, %rsi\n"
	"	mov $1, %edx\n"
	"	syscall\n"
	"1:	mov $231, %eax\n" /* exit_group(0) */
	"	xor %edi, %edi\n"
	"	syscall\n");

#elif defined __aarch64__

__asm__("	.weak _start\n"
	"	.globl main\n"
	"_start:	ldr x0, [sp]\n"
	"main:	cmp w0, 1\n"
	"	b.eq 1f\n"
	"	mov x0, 1\n" /* write(1, stack, 1) */
	"	mov x1, sp\n"
	"	mov x2, 1\n"
	"	mov x8, 64\n"
	"	svc 0\n"
	"1:	mov x0, 0\n" /* exit_group(0) */
	"	mov x8, 94\n"
	"	svc 0\n");

#else

#include <unistd.h>

int main(int argc, char **argv)
{
	return argc > 1 && write(1, argv[1], 1) != 1;
}

#endif

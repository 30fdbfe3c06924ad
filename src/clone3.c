/* clone3(2) in assembly: with a stack of its own the child must not return
 * through the frame of its parent, which C cannot promise.
 *
 * File-scope assembly rather than a .S file, so that the library can be carried
 * as one C file.  The landing pad and the property note keep the whole program's
 * indirect branch tracking on; a missing GNU-stack note would make its stack
 * executable.  The outermost frame is marked for unwinders by an undefined return
 * address.  The compiler writes the property note itself under -fcf-protection
 * or -mbranch-protection. */
#include <errno.h>

#include "clone3.h"

#if defined __linux__ && defined __x86_64__ && !defined __ILP32__
#define HAVE_CLONE3 1

__asm__(
	".pushsection .text\n"
	".globl wean_clone3\n"
	".hidden wean_clone3\n"
	".type wean_clone3, @function\n"
	".balign 16\n"
	"wean_clone3:\n"
	"	.cfi_startproc\n"
	"	endbr64\n"
	"	movq %rcx, %r8\n"          /* syscall clobbers rcx */
	"	movl $435, %eax\n"
	"	syscall\n"
	"	testq %rax, %rax\n"
	"	jz 1f\n"
	"	ret\n"
	"1:	.cfi_undefined rip\n"
	"	xorl %ebp, %ebp\n"
	"	movq %r8, %rdi\n"
	"	call *%rdx\n"
	"	hlt\n"
	"	.cfi_endproc\n"
	".size wean_clone3, . - wean_clone3\n"
	".popsection\n"
	".pushsection .note.GNU-stack, \"\", @progbits\n"
	".popsection\n"
#ifndef __CET__
	".pushsection .note.gnu.property, \"a\", @note\n"
	"	.balign 8\n"
	"	.long 4, 16, 5\n"
	"	.asciz \"GNU\"\n"
	"	.long 0xc0000002, 4, 3, 0\n" /* X86_FEATURE_1_AND: IBT, SHSTK */
	".popsection\n"
#endif
);

#elif defined __linux__ && defined __aarch64__ && !defined __ILP32__
#define HAVE_CLONE3 1

__asm__(
	".pushsection .text\n"
	".globl wean_clone3\n"
	".hidden wean_clone3\n"
	".type wean_clone3, %function\n"
	".balign 16\n"
	"wean_clone3:\n"
	"	.cfi_startproc\n"
	"	hint #34\n"                /* bti c */
	"	mov x8, #435\n"
	"	svc #0\n"
	"	cbz x0, 1f\n"
	"	ret\n"
	"1:	.cfi_undefined x30\n"
	"	mov x29, #0\n"
	"	mov x30, #0\n"
	"	mov x0, x3\n"
	"	blr x2\n"
	"	brk #1000\n"
	"	.cfi_endproc\n"
	".size wean_clone3, . - wean_clone3\n"
	".popsection\n"
	".pushsection .note.GNU-stack, \"\", %progbits\n"
	".popsection\n"
#ifndef __ARM_FEATURE_BTI_DEFAULT
	".pushsection .note.gnu.property, \"a\", %note\n"
	"	.balign 8\n"
	"	.long 4, 16, 5\n"
	"	.asciz \"GNU\"\n"
	"	.long 0xc0000000, 4, 1, 0\n" /* AARCH64_FEATURE_1_AND: BTI */
	".popsection\n"
#endif
);

#endif

#ifndef HAVE_CLONE3
long
wean_clone3(void *clone_args, size_t size, int (*run)(void *), void *arg)
{
	(void)clone_args, (void)size, (void)run, (void)arg;
	return -ENOSYS;
}
#endif

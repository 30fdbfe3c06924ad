/* wean_popen_compat.h - turns a program over to wean_popen.h without a change:
 *
 *	cc -include wean_popen_compat.h ... -lwean
 *
 * It may also be included before or after <stdio.h> and <stdlib.h>.  Before them it
 * includes nothing, so that what the program defines for them (_GNU_SOURCE) still counts,
 * and their own declarations of these names then declare ours. */
#ifndef WEAN_POPEN_COMPAT_H
#define WEAN_POPEN_COMPAT_H

/* BUFSIZ, EXIT_FAILURE: they have been included.  In C++ <cstdlib> would take away a macro
   `system` and look for a function of that name. */
#ifdef __cplusplus
# include <cstdlib>
# include <wean_popen.h>
namespace std { using ::wean_system; }
#elif defined BUFSIZ || defined EXIT_FAILURE
# include <wean_popen.h>
#endif

#define popen wean_popen
#define pclose wean_pclose
#define system wean_system

#endif

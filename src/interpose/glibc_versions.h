// SPDX-License-Identifier: Apache-2.0
#pragma once

// Included into every file of this library by its command line: it is loaded by whatever C library
// the programs of a container bring, so it asks for the oldest versions of what it calls. Before
// glibc 2.34 these were in libdl and libpthread.
// NOLINTBEGIN(hicpp-no-assembler)
#if defined(__x86_64__)
__asm__(".symver dlopen, dlopen@GLIBC_2.2.5");
__asm__(".symver dlvsym, dlvsym@GLIBC_2.2.5");
__asm__(".symver pthread_mutex_consistent, pthread_mutex_consistent@GLIBC_2.12");
__asm__(".symver pthread_create, pthread_create@GLIBC_2.2.5");
__asm__(".symver pthread_detach, pthread_detach@GLIBC_2.2.5");
__asm__(".symver pthread_sigmask, pthread_sigmask@GLIBC_2.2.5");
#elif defined(__aarch64__)
__asm__(".symver dlopen, dlopen@GLIBC_2.17");
__asm__(".symver dlvsym, dlvsym@GLIBC_2.17");
__asm__(".symver pthread_mutex_consistent, pthread_mutex_consistent@GLIBC_2.17");
__asm__(".symver pthread_create, pthread_create@GLIBC_2.17");
__asm__(".symver pthread_detach, pthread_detach@GLIBC_2.17");
__asm__(".symver pthread_sigmask, pthread_sigmask@GLIBC_2.17");
#endif
// NOLINTEND(hicpp-no-assembler)

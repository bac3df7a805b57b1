// The one file that asks which compiler, machine and library this is.
#pragma once

// Compiles a function once for each kind of processor and picks at the start of the program. Not
// under sanitizers, whose instrumentation would run before they are ready.
#if defined(__x86_64__) && !defined(__clang__) && !defined(__SANITIZE_ADDRESS__) && \
    !defined(__SANITIZE_THREAD__)
#define BRAID_FOR_EACH_CPU \
  __attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#else
#define BRAID_FOR_EACH_CPU
#endif

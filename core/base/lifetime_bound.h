#pragma once

/// Marks a parameter that the object made from it refers to, and that must therefore outlive it.
/// Clang then warns about `IntList sizes = {4, 5};`, whose numbers are gone at the semicolon.
#if defined(__clang__)
#define LS_LIFETIME_BOUND [[clang::lifetimebound]]
#else
#define LS_LIFETIME_BOUND
#endif

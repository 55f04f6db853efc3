#pragma once

/// Loops that are compiled twice, for the build's baseline and for processors with 64-byte vectors
/// (AVX-512), chosen at run time.
///
/// `LS_WIDE_VECTORS` before a function makes the second copy: everything it calls is inlined into
/// it and compiled with the wider instructions. No other function uses them, so no inline function
/// of a shared header can be emitted in a form that older processors cannot run. Both copies give
/// the same bits: multiply-adds are explicit, and sums fix their lanes (row_lanes.h).
/// `LS_WIDE_VECTORS_PART` marks functions that only such functions call and that use 64-byte
/// vectors. `LS_TARGET_OF(features)` are the attributes for one set of instructions.
#if defined(__x86_64__) && defined(__OPTIMIZE__)
#define LS_HAVE_WIDE_VECTORS 1
#define LS_WIDE_FEATURES "avx512f,avx512bw,avx512dq,avx512vl"
#ifdef __clang__
#define LS_TARGET_OF(features) clang::min_vector_width(512), gnu::target(features)
#else
#define LS_TARGET_OF(features) gnu::target(features ",prefer-vector-width=512")
#endif
#define LS_WIDE_TARGET LS_TARGET_OF(LS_WIDE_FEATURES)
#define LS_WIDE_VECTORS [[LS_WIDE_TARGET, gnu::flatten]]
#define LS_WIDE_VECTORS_PART [[LS_WIDE_TARGET]]
#else
#define LS_HAVE_WIDE_VECTORS 0
#define LS_WIDE_VECTORS
#define LS_WIDE_VECTORS_PART
#endif

namespace lockstep::cpu {

/// True if this processor has AVX-512 and LOCKSTEP_CPU_CAPABILITY is not "avx2".
bool has_wide_vectors();

/// Returns `wide` if `has_wide_vectors()`, else `baseline`.
template <class Function>
Function for_this_cpu(Function wide, Function baseline) {
  return has_wide_vectors() ? wide : baseline;
}

}  // namespace lockstep::cpu

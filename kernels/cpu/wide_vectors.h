#pragma once

/// Loops that are compiled twice: for the baseline of the build, and for processors with 64-byte
/// vectors (AVX-512), chosen at run time.
///
/// `LS_WIDE_VECTORS` before a function makes the second copy: all it calls is compiled into it,
/// with the wider instructions. Nothing but that function has them, so no inline function of a
/// shared header can end up as a copy that older processors cannot run. Both copies give the same
/// bits: multiply-adds are explicit, and sums name their lanes (row_lanes.h).
/// `LS_WIDE_VECTORS_PART` is for what such functions alone call and what names 64-byte vectors.
#if defined(__x86_64__) && defined(__OPTIMIZE__)
#define LS_HAVE_WIDE_VECTORS 1
#define LS_WIDE_TARGET gnu::target("avx512f,avx512bw,avx512dq,avx512vl,prefer-vector-width=512")
#define LS_WIDE_VECTORS [[LS_WIDE_TARGET, gnu::flatten]]
#define LS_WIDE_VECTORS_PART [[LS_WIDE_TARGET]]
#else
#define LS_HAVE_WIDE_VECTORS 0
#define LS_WIDE_VECTORS
#define LS_WIDE_VECTORS_PART
#endif

namespace lockstep::cpu {

/// Whether this processor has them and LOCKSTEP_CPU_CAPABILITY is not "avx2".
bool has_wide_vectors();

/// `wide` where `has_wide_vectors()`, else `baseline`.
template <class Function>
Function for_this_cpu(Function wide, Function baseline) {
  return has_wide_vectors() ? wide : baseline;
}

}  // namespace lockstep::cpu

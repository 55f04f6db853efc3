#pragma once

#include <cstdint>
#include <cstring>

#include "tests/emulation/block.h"

// CUDA's barriers, shuffles and votes. The last parameters are the call site, for messages.

namespace lockstep::emulation {

template <class T>
T shuffle(unsigned mask, T value, int source, const Site& site) {
  static_assert(sizeof(T) == 4 || sizeof(T) == 8, "CUDA shuffles numbers of 4 or 8 bytes");
  uint64_t bits = 0;
  std::memcpy(&bits, &value, sizeof(T));
  bits = exchange(Operation::kShuffle, mask, bits, source, site);
  std::memcpy(&value, &bits, sizeof(T));
  return value;
}

/// First lane of this thread's segment, and one past its last.
inline int segment_begin(int width) { return lane() & ~(width - 1); }
inline int segment_end(int width) { return segment_begin(width) + width; }

}  // namespace lockstep::emulation

// NOLINTBEGIN: the names are CUDA's.
#define LS_SITE_PARAMETERS const char *file = __builtin_FILE(), int line = __builtin_LINE()
#define LS_SITE(function) \
  ::lockstep::emulation::Site { function, file, line }

inline void __syncthreads(LS_SITE_PARAMETERS) {
  ::lockstep::emulation::barrier(false, LS_SITE("__syncthreads"));
}
inline int __syncthreads_or(int predicate, LS_SITE_PARAMETERS) {
  return ::lockstep::emulation::barrier(predicate != 0, LS_SITE("__syncthreads_or")).any;
}
inline int __syncthreads_and(int predicate, LS_SITE_PARAMETERS) {
  return !::lockstep::emulation::barrier(predicate == 0, LS_SITE("__syncthreads_and")).any;
}
inline int __syncthreads_count(int predicate, LS_SITE_PARAMETERS) {
  return ::lockstep::emulation::barrier(predicate != 0, LS_SITE("__syncthreads_count")).count;
}

inline void __syncwarp(unsigned mask = 0xffffffff, LS_SITE_PARAMETERS) {
  using namespace ::lockstep::emulation;
  exchange(Operation::kMeet, mask, 0, 0, LS_SITE("__syncwarp"));
}
inline unsigned __ballot_sync(unsigned mask, int predicate, LS_SITE_PARAMETERS) {
  using namespace ::lockstep::emulation;
  return static_cast<unsigned>(
      exchange(Operation::kVote, mask, predicate != 0, 0, LS_SITE("__ballot_sync")));
}
inline int __any_sync(unsigned mask, int predicate, LS_SITE_PARAMETERS) {
  using namespace ::lockstep::emulation;
  return exchange(Operation::kVote, mask, predicate != 0, 0, LS_SITE("__any_sync")) != 0;
}
inline int __all_sync(unsigned mask, int predicate, LS_SITE_PARAMETERS) {
  using namespace ::lockstep::emulation;
  return exchange(Operation::kVote, mask, predicate == 0, 0, LS_SITE("__all_sync")) == 0;
}

template <class T>
T __shfl_sync(unsigned mask, T value, int source, int width = 32, LS_SITE_PARAMETERS) {
  using namespace ::lockstep::emulation;
  return shuffle(mask, value, segment_begin(width) + (source & (width - 1)),
                 LS_SITE("__shfl_sync"));
}
template <class T>
T __shfl_up_sync(unsigned mask, T value, unsigned delta, int width = 32, LS_SITE_PARAMETERS) {
  using namespace ::lockstep::emulation;
  const int source = lane() - static_cast<int>(delta);
  return shuffle(mask, value, source < segment_begin(width) ? lane() : source,
                 LS_SITE("__shfl_up_sync"));
}
template <class T>
T __shfl_down_sync(unsigned mask, T value, unsigned delta, int width = 32, LS_SITE_PARAMETERS) {
  using namespace ::lockstep::emulation;
  const int source = lane() + static_cast<int>(delta);
  return shuffle(mask, value, source >= segment_end(width) ? lane() : source,
                 LS_SITE("__shfl_down_sync"));
}
template <class T>
T __shfl_xor_sync(unsigned mask, T value, int other, int width = 32, LS_SITE_PARAMETERS) {
  using namespace ::lockstep::emulation;
  const int source = lane() ^ other;
  return shuffle(mask, value, source >= segment_end(width) ? lane() : source,
                 LS_SITE("__shfl_xor_sync"));
}
#undef LS_SITE
#undef LS_SITE_PARAMETERS
// NOLINTEND

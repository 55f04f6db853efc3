#pragma once

#include <cstdint>

#include "dist/collectives/operation.h"
#include "dist/nccl/nccl_library.h"

namespace lockstep::dist {

/// One rank of a communicator, and where its calls are queued.
struct NcclPlace {
  const NcclLibrary& library;
  nccl::Comm* comm = nullptr;
  void* stream = nullptr;  ///< the device library's own
  int rank = 0;
  int size = 1;
  /// Bytes of one call at most; larger parts become several calls, alike on all ranks.
  size_t chunk_bytes = size_t{1} << 30;
};

/// Whether NCCL can reduce elements of this type. It cannot where they are int16.
bool nccl_reduces(DType dtype);

/// Makes the calls that an operation consists of, for one ncclGroupStart and ncclGroupEnd around
/// them: with others, they begin together. Nothing for 0 elements. all_to_all is sends and
/// receives; where all_gather and reduce_scatter are cut, they become a broadcast, or a reduce, of
/// each rank's part.
///
/// bool is reduced as uint8, which is right for min and max; what is only moved goes as bytes.
/// Throws what a call failed with.
void make_nccl_calls(const NcclPlace& place, const Operation& operation);

}  // namespace lockstep::dist

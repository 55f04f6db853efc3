#pragma once

#include <cstdint>

#include "dist/collectives/operation.h"
#include "dist/nccl/nccl_library.h"

namespace lockstep::dist {

/// A rank of a communicator, and the stream on which its calls are queued.
struct NcclPlace {
  const NcclLibrary& library;
  nccl::Comm* comm = nullptr;
  void* stream = nullptr;  ///< native stream handle (cudaStream_t)
  int rank = 0;
  int size = 1;
  /// Largest size of one call in bytes; larger parts become several calls, the same on all ranks.
  size_t chunk_bytes = size_t{1} << 30;
};

/// Whether NCCL can reduce elements of this dtype: all but int16.
bool nccl_reduces(DType dtype);

/// Makes the NCCL calls of an operation. Must be called between ncclGroupStart and ncclGroupEnd, so
/// that they begin together. Does nothing for 0 elements. all_to_all becomes sends and receives; an
/// all_gather or reduce_scatter larger than `chunk_bytes` becomes a broadcast or reduce of each
/// rank's part.
///
/// bool is reduced as uint8, which is correct for min and max; data that is only moved is sent as
/// bytes. Throws the error of a failed call.
void make_nccl_calls(const NcclPlace& place, const Operation& operation);

}  // namespace lockstep::dist

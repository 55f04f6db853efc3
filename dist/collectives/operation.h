#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/tensor/dtype.h"
#include "dist/collectives/leaf_deal.h"
#include "dist/collectives/reduction.h"

namespace lockstep::dist {

enum class OpKind : uint8_t {
  kAllReduce,
  kReduceScatter,
  kAllGather,
  kBroadcast,
  kReduce,
  kAllToAll,
  kBarrier,
  kSend,
  kReceive,
};

/// Returns for example "all_reduce".
const char* name(OpKind kind);
/// Whether it combines values of ranks: all_reduce, reduce_scatter and reduce.
bool is_reduction(OpKind kind);

/// One rank's part of an operation of a group. Its arguments are validated and contiguous.
struct Operation {
  OpKind kind = OpKind::kBarrier;
  DType dtype = DType::kU8;
  Reduction reduction;
  int root = 0;           ///< root of broadcast and reduce; peer of send and receive
  uint32_t user_tag = 0;  ///< tag of send and receive
  /// Number of elements. all_reduce, broadcast, reduce, send, receive: of the tensor. all_gather:
  /// of the input. reduce_scatter: of the output. Unused by all_to_all.
  int64_t count = 0;
  /// all_to_all: number of elements to and from each rank.
  std::vector<int64_t> send_counts;
  std::vector<int64_t> receive_counts;
  /// Reductions over `reduction.leaves`: which of them each rank has; empty otherwise.
  LeafDeal deal;
  /// Reductions over leaves: distance in bytes between the sums of this rank's subtrees in `input`.
  uint64_t input_stride = 0;
  const void* input = nullptr;
  /// May be `input` in all_reduce, broadcast and reduce. This rank's part of all_gather's output
  /// may be its input, and this rank's part of reduce_scatter's input its output. Nothing else may
  /// overlap.
  void* output = nullptr;
};

/// What `count` elements take.
inline uint64_t bytes_of(const Operation& operation) {
  return static_cast<uint64_t>(operation.count) * size_of(operation.dtype);
}

/// What must be equal on all ranks that take part in an operation.
struct Signature {
  uint64_t group = 0;     ///< the group's identity
  uint64_t sequence = 0;  ///< sequence number within the group, from 0
  OpKind kind = OpKind::kBarrier;
  DType dtype = DType::kU8;
  Reduction reduction;
  int root = 0;
  int64_t count = 0;
  uint64_t deal = 0;  ///< identity of the leaves' deal

  friend bool operator==(const Signature&, const Signature&) = default;
};

/// Returns the signature of `operation`, number `sequence` of `group`. It leaves out the counts of
/// all_to_all, which may differ between ranks.
Signature signature_of(const Operation& operation, uint64_t group, uint64_t sequence);
/// Returns a well-mixed hash, equal on all machines.
uint64_t hash(const Signature& signature);
/// Returns for example "all_reduce #17 of 1,024 float32, sum". Of uneven deals of leaves it tells
/// the identity.
std::string to_string(const Signature& signature);

}  // namespace lockstep::dist

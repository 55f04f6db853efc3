#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/tensor/dtype.h"
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

/// "all_reduce".
const char* name(OpKind kind);

/// One operation of a group, as one rank takes part in it: checked, dense, row-major.
struct Operation {
  OpKind kind = OpKind::kBarrier;
  DType dtype = DType::kU8;
  Reduction reduction;
  int root = 0;           ///< of broadcast and reduce; the other rank of send and receive
  uint32_t user_tag = 0;  ///< of send and receive
  /// Elements. all_reduce, broadcast, reduce, send, receive: of the tensor. all_gather: of the
  /// input. reduce_scatter: of the output. Unused by all_to_all.
  int64_t count = 0;
  /// all_to_all: elements for, and from, each rank.
  std::vector<int64_t> send_counts;
  std::vector<int64_t> receive_counts;
  /// all_reduce over leaves: `input` holds the sums of this rank's subtrees, each so many bytes
  /// after the one before.
  uint64_t input_stride = 0;
  const void* input = nullptr;
  /// May be `input` in all_reduce, broadcast and reduce. The own part of all_gather's output may be
  /// its input, and the own part of reduce_scatter's input its output. Nothing else may overlap.
  void* output = nullptr;
};

/// What must be equal on all ranks that take part in an operation.
struct Signature {
  uint64_t group = 0;     ///< the group's identity
  uint64_t sequence = 0;  ///< number of the operation within the group, from 0
  OpKind kind = OpKind::kBarrier;
  DType dtype = DType::kU8;
  Reduction reduction;
  int root = 0;
  int64_t count = 0;

  friend bool operator==(const Signature&, const Signature&) = default;
};

/// Of `operation`, the `sequence`th of `group`. Counts of all_to_all may differ between ranks and
/// are not part of it.
Signature signature_of(const Operation& operation, uint64_t group, uint64_t sequence);
/// All bits mixed; equal on all machines.
uint64_t hash(const Signature& signature);
/// "all_reduce #17 of 1,024 float32, sum".
std::string to_string(const Signature& signature);

}  // namespace lockstep::dist

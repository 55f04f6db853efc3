#pragma once

#include <rapidcheck.h>

#include <iosfwd>
#include <vector>

#include "dist/collectives/schedule.h"
#include "tests/dist/collectives/naive_reduction.h"

namespace lockstep::dist {

/// One collective operation, from the point of view of all ranks of a group of `size`.
struct Collective {
  int size = 1;
  std::vector<int> hosts;  ///< by rank; empty: all on one
  Cut cut;
  bool in_place = false;
  std::vector<Operation> operations;  ///< by rank; memory addresses are not set

  Operation operation(int rank) const { return operations[static_cast<size_t>(rank)]; }
  HostLayout layout() const {
    return hosts.empty() ? HostLayout::one_host(size) : HostLayout(hosts);
  }
  Schedule plan(int rank) const { return dist::plan(operation(rank), rank, layout(), cut); }
};

/// Bytes of an operation's input on a rank, and of its output; 0 where there is none.
uint64_t input_bytes(const Operation& operation, int rank, int size);
uint64_t output_bytes(const Operation& operation, int size);
/// If in place: byte offset of the smaller buffer (input or output) in the larger one. The result
/// of a sum over leaves is in place of one of the rank's sums, chosen by the count.
uint64_t own_part(const Operation& operation, int rank);

/// Reference for the ranks' `outputs` after the operation.
std::vector<Bytes> expected_outputs(const Collective& collective, const std::vector<Bytes>& inputs,
                                    std::vector<Bytes> outputs);

/// The default operation of a kind: root 0, sum, equal parts. kSend is from rank 0 to 1 of two.
Collective collective(OpKind kind, int size, int64_t count, DType dtype = DType::kF32);
/// Random kind, 1 to 8 ranks, on one host or several, counts from 0, small segments.
rc::Gen<Collective> random_collective();

std::ostream& operator<<(std::ostream& stream, const Collective& collective);

}  // namespace lockstep::dist

#pragma once

#include <rapidcheck.h>

#include <iosfwd>
#include <vector>

#include "dist/collectives/schedule.h"
#include "tests/dist/collectives/naive_reduction.h"

namespace lockstep::dist {

/// One operation as every rank of a group of `size` takes part in it.
struct Collective {
  int size = 1;
  Cut cut;
  bool in_place = false;
  std::vector<Operation> operations;  ///< by rank; without memory

  Operation operation(int rank) const { return operations[static_cast<size_t>(rank)]; }
  Schedule plan(int rank) const { return dist::plan(operation(rank), rank, size, cut); }
};

/// Bytes of an operation's input on a rank, and of its output; 0 where it has none.
uint64_t input_bytes(const Operation& operation, int rank, int size);
uint64_t output_bytes(const Operation& operation, int size);
/// Where, in place, the smaller of the two lies in the larger one.
uint64_t own_part(const Operation& operation, int rank);

/// What the ranks' `outputs` hold after the operation, computed in one place.
std::vector<Bytes> expected_outputs(const Collective& collective, const std::vector<Bytes>& inputs,
                                    std::vector<Bytes> outputs);

/// The plainest of a kind: root 0, sums, all parts equal. kSend, for two ranks, is from 0 to 1.
Collective collective(OpKind kind, int size, int64_t count, DType dtype = DType::kF32);
/// Any kind, 1 to 8 ranks, counts from 0, small cuts.
rc::Gen<Collective> random_collective();

std::ostream& operator<<(std::ostream& stream, const Collective& collective);

}  // namespace lockstep::dist

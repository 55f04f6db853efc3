#pragma once

#include <cstdint>
#include <vector>

#include "core/tensor/tensor.h"
#include "dist/collectives/operation.h"

namespace lockstep::dist {

/// tree_all_reduce and tree_reduce_scatter on a device (dist/collectives/leaf_tree.h), built from
/// NCCL messages and additions on the device: every rank receives all ranks' sums of one part of
/// the elements, adds them in the order of the tree, and in an all_reduce broadcasts the result. So
/// it is bitwise equal to that of other groups.
///
/// All of it is queued on the current stream, in the order of the functions below.
class NcclTree {
 public:
  /// `operation` is an all_reduce or a reduce_scatter over leaves of rank `rank` of `size`,
  /// `output` and `sums` are its tensors. Allocates memory for the ranks' sums of this rank's part.
  NcclTree(const Operation& operation, const Tensor& output, const Tensor& sums, int rank,
           int size);

  /// Returns the sends and receives, for one NCCL group of calls.
  std::vector<Operation> exchange() const;
  /// Adds up the received sums.
  void add_up() const;
  /// Returns a broadcast of each rank's part, for one NCCL group of calls; none in a
  /// reduce_scatter.
  std::vector<Operation> gather() const;

 private:
  bool scatters() const { return operation_.kind == OpKind::kReduceScatter; }
  /// Number of elements of a sum.
  int64_t total() const { return operation_.count * (scatters() ? size_ : 1); }
  int64_t first(int rank) const { return total() * rank / size_; }
  int64_t part(int rank) const { return first(rank + 1) - first(rank); }
  /// This rank's sums of part `rank`.
  std::vector<Tensor> own_sums(int rank) const;

  const Operation operation_;
  const int rank_;
  const int size_;
  Tensor output_;              ///< flat
  std::vector<Tensor> sums_;   ///< flat
  Tensor received_;            ///< [all ranks' sums, part]; this rank's rows stay unused
  std::vector<int64_t> rows_;  ///< first row of each rank's sums in received_, and the row count
};

}  // namespace lockstep::dist

#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "core/tensor/tensor.h"
#include "train/optimizer/matrix_shares.h"

namespace lockstep::dist {
class ProcessGroup;
class ShardedModel;
}  // namespace lockstep::dist

namespace lockstep::train {

/// Returns the size of the matrix [size(0), all others] that Muon takes a tensor for; of a vector
/// [size(0), 1].
MatrixSize size_of_matrix(const Tensor& tensor);

/// Makes whole matrices of the parts that ranks keep of a sharded model's, each on one rank, and
/// gives the ranks their parts of what is computed of them. MatrixShares says which rank gets
/// which. Every rank gets some matrices at a time, in rounds: one large one, or small ones beside
/// each other.
class MatrixExchange {
 public:
  /// `matrices`: numbers of trained parameters of `model` (ShardedModel::trained). What is computed
  /// of them takes time as `cost_of` says. The model must outlive this object.
  MatrixExchange(const dist::ShardedModel& model, const std::vector<size_t>& matrices,
                 MatrixShares::Cost cost_of = orthogonalizing_cost);

  /// The rank of the model's shards() that gets matrix `index` of the constructor's list.
  int owner(size_t index) const { return matrices_[index].owner; }

  /// What is exchanged, and by whom it is computed. A `part` counts this rank's parts of the model
  /// (ShardedModel::parameters).
  struct Work {
    /// Returns what this rank has of a matrix: f32, as many elements as the part.
    std::function<Tensor(size_t part)> give;
    /// Makes results of whole matrices, f32 [rows, columns]: of as many elements, in `dtype`.
    /// `indices` are theirs in the constructor's list.
    std::function<std::vector<Tensor>(std::span<const size_t> indices,
                                      const std::vector<Tensor>& wholes)>
        compute;
    /// Takes this rank's part of a result, flat, in `dtype` and on the model's device, with the
    /// shape of the whole.
    std::function<void(size_t part, const Tensor& result, const MatrixSize& whole)> take;
    DType dtype = DType::kF32;
  };
  /// Does the work with all matrices. Collective.
  void run(const Work& work) const;

 private:
  /// Elements of a flattened matrix.
  struct Run {
    int64_t first = 0;
    int64_t end = 0;
    int64_t size() const { return end - first; }
  };
  struct Matrix {
    MatrixSize size;
    std::vector<Run> runs;  ///< by rank
    int64_t part = -1;      ///< of this rank; -1: it has none
    int owner = 0;          ///< the rank that gets it
  };
  using Round = std::vector<std::vector<size_t>>;  ///< matrices by the rank that gets them
  void run(const Round& round, const Work& work) const;
  /// Takes the matrices that this rank has got apart into the ranks' runs, or puts them together.
  template <class Copy>
  void each_piece(const Round& round, const Copy& copy) const;

  dist::ProcessGroup& ranks_;
  Device device_;
  std::vector<Matrix> matrices_;
  std::vector<Round> rounds_;
};

}  // namespace lockstep::train

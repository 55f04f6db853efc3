#pragma once

#include "core/base/function_ref.h"
#include "kernels/common/conv_problem.h"
#include "kernels/cuda/cudnn_graph.h"

namespace lockstep::cuda {

/// Queues one result of a convolution by cuDNN, without a bias, of tensors that are all row-major
/// or all have their channels innermost; they are asked for when cuDNN is known to take them.
/// False, with no convolution queued, where it has to be computed another way; with
/// LOCKSTEP_WARN_COPIES=1 standard error says once why. Throws DeviceError.
bool convolve_by_cudnn(ConvResult result, const ConvProblem& problem, bool channels_last,
                       FunctionRef<ConvTensors()> tensors);

#ifdef LS_HAS_CUDNN

/// Everything that cuDNN chooses an engine by. Equal ones have equal plans for as long as the
/// process lives.
struct CudnnConv {
  static constexpr size_t kRank = 5;  ///< of tensors, at most

  DType dtype = DType::kBF16;
  ConvResult result = ConvResult::kMap;
  bool tf32 = false;
  bool channels_last = false;  ///< all tensors; else they are row-major
  size_t rank = 0;             ///< of tensors
  int64_t image[kRank] = {}, weight[kRank] = {}, map[kRank] = {};
  int64_t stride[kRank - 2] = {}, padding[kRank - 2] = {}, dilation[kRank - 2] = {};

  auto operator<=>(const CudnnConv&) const = default;
  CudnnRules rules() const;
};

/// The tensors of a problem's graph.
struct CudnnConvTensors {
  int64_t image = -1, weight = -1, map = -1;
};

/// Throws CudnnRefusal.
CudnnConvTensors describe_conv(CudnnGraph& graph, const CudnnConv& problem);

/// The problem that a call is, or nothing where cuDNN has none of the kind: f64, integers, no
/// elements, too many dimensions.
std::optional<CudnnConv> cudnn_conv(ConvResult result, const ConvProblem& problem, bool tf32,
                                    bool channels_last = false);

#endif

}  // namespace lockstep::cuda

#pragma once

#include "core/base/function_ref.h"
#include "kernels/common/conv_problem.h"
#include "kernels/cuda/cudnn_graph.h"

namespace lockstep::cuda {

/// Queues one result of a convolution by cuDNN, without bias. `tensors` must be all row-major or
/// all channels-last; it is called only once cuDNN is known to support the problem. Returns false,
/// with no convolution queued, if cuDNN cannot compute it, which is counted
/// (core/device/slow_paths.h). Throws DeviceError.
bool convolve_by_cudnn(ConvResult result, const ConvProblem& problem, bool channels_last,
                       FunctionRef<ConvTensors()> tensors);

#ifdef LS_HAS_CUDNN

/// All properties by which cuDNN chooses an engine: the key of the plan cache. Equal problems use
/// equal plans for the lifetime of the process.
struct CudnnConv {
  static constexpr size_t kRank = 5;  ///< maximum rank of the tensors

  DType dtype = DType::kBF16;
  ConvResult result = ConvResult::kMap;
  bool tf32 = false;
  bool channels_last = false;  ///< layout of all tensors; else row-major
  size_t rank = 0;             ///< rank of the tensors
  int64_t image[kRank] = {}, weight[kRank] = {}, map[kRank] = {};
  int64_t stride[kRank - 2] = {}, padding[kRank - 2] = {}, dilation[kRank - 2] = {};

  auto operator<=>(const CudnnConv&) const = default;
  CudnnRules rules() const;
};

/// Tensor numbers of a problem's graph.
struct CudnnConvTensors {
  int64_t image = -1, weight = -1, map = -1;
};

/// Adds the problem's tensors and operation to `graph`. Throws CudnnRefusal.
CudnnConvTensors describe_conv(CudnnGraph& graph, const CudnnConv& problem);

/// Returns the cuDNN problem of a call, or nullopt if cuDNN does not support it: f64, integers, no
/// elements, too many dimensions.
std::optional<CudnnConv> cudnn_conv(ConvResult result, const ConvProblem& problem, bool tf32,
                                    bool channels_last = false);

#endif

}  // namespace lockstep::cuda

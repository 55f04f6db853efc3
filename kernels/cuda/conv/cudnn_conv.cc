#include "kernels/cuda/conv/cudnn_conv.h"

#include "kernels/cuda/cudnn_plans.h"

#ifdef LS_HAS_CUDNN

#include <fmt/format.h>

#include <algorithm>

#include "core/base/environment_flag.h"
#include "core/tensor/memory_format.h"
#include "kernels/cuda/workspace.h"

namespace lockstep::cuda {

namespace {

bool allows_tf32() {
  static const bool on = environment_flag("LOCKSTEP_ALLOW_TF32");
  return on;
}

using Plans = CudnnPlans<CudnnConv, CudnnConvTensors>;
Plans& plans() {
  static auto* const instance = new Plans(&describe_conv);
  return *instance;
}

/// Sets sizes [outer, inner, sizes...], with 1s before `sizes` to make up `rank` dimensions.
void set_sizes(int64_t (&to)[CudnnConv::kRank], size_t rank, int64_t outer, int64_t inner,
               const Dims& sizes) {
  to[0] = outer;
  to[1] = inner;
  std::fill(to + 2, to + rank, 1);
  std::ranges::copy(sizes, to + rank - sizes.size());
}

void set_each(int64_t (&to)[CudnnConv::kRank - 2], size_t rank, int64_t otherwise,
              const Dims& numbers) {
  std::fill(to, to + rank - 2, otherwise);
  std::ranges::copy(numbers, to + rank - 2 - numbers.size());
}

int64_t add_tensor(CudnnGraph& graph, const CudnnConv& p,
                   const int64_t (&sizes)[CudnnConv::kRank]) {
  const std::span all(sizes, p.rank);
  const Dims strides = p.channels_last ? channels_last_strides(all) : contiguous_strides(all);
  return graph.tensor(cudnn_data_type(p.dtype), all, strides);
}

bool is_aligned(const void* address) { return reinterpret_cast<uintptr_t>(address) % 16 == 0; }

}  // namespace

CudnnRules CudnnConv::rules() const {
  return {.f32 = dtype == DType::kF32, .tf32 = tf32, .most_workspace = int64_t{1} << 30};
}

CudnnConvTensors describe_conv(CudnnGraph& graph, const CudnnConv& p) {
  CudnnConvTensors t;
  t.image = add_tensor(graph, p, p.image);
  t.weight = add_tensor(graph, p, p.weight);
  t.map = add_tensor(graph, p, p.map);
  const auto direction = [&] {
    switch (p.result) {
      case ConvResult::kImage:
        return CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR;
      case ConvResult::kWeight:
        return CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR;
      case ConvResult::kMap:
        break;
    }
    return CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR;
  }();
  graph.convolution({.stride = std::span(p.stride, p.rank - 2),
                     .padding = std::span(p.padding, p.rank - 2),
                     .dilation = std::span(p.dilation, p.rank - 2),
                     .image = t.image,
                     .weight = t.weight,
                     .map = t.map,
                     .direction = direction});
  return t;
}

std::optional<CudnnConv> cudnn_conv(ConvResult result, const ConvProblem& problem, bool tf32,
                                    bool channels_last) {
  const bool takes =
      problem.dtype == DType::kF32 || problem.dtype == DType::kBF16 || problem.dtype == DType::kF16;
  if (!takes || problem.is_empty() || problem.rank() < 1 || problem.rank() > 3) return std::nullopt;
  CudnnConv p;
  p.dtype = problem.dtype;
  p.result = result;
  p.tf32 = tf32 && p.dtype == DType::kF32;
  p.channels_last = channels_last;
  p.rank = std::max<size_t>(problem.rank(), 2) + 2;
  set_sizes(p.image, p.rank, problem.batch, problem.channels, problem.image);
  set_sizes(p.weight, p.rank, problem.features, problem.channels / problem.groups, problem.kernel);
  set_sizes(p.map, p.rank, problem.batch, problem.features, problem.map);
  set_each(p.stride, p.rank, 1, problem.stride);
  set_each(p.padding, p.rank, 0, problem.padding);
  set_each(p.dilation, p.rank, 1, problem.dilation);
  return p;
}

bool convolve_by_cudnn(ConvResult result, const ConvProblem& problem, bool channels_last,
                       FunctionRef<ConvTensors()> find_tensors) {
  const std::optional<CudnnConv> p = cudnn_conv(result, problem, allows_tf32(), channels_last);
  if (!p || !has_cudnn()) return false;
  const CudnnCall call;
  const ContextGuard guard(call.context);
  bool done = false;
  CudnnLibrary& library = cudnn();
  const auto note = [&](const std::string& why) {
    note_without_cudnn(fmt::format("convolutions of {}{}", name(p->dtype),
                                   channels_last ? " in channels_last" : ""),
                       why);
  };
  const std::string reason = library.with_handle(call.device, [&](cudnnHandle_t handle) {
    const Plans::Planned planned =
        plans().find_or_make(library, call.device, handle, *p, p->rules());
    if (planned->plan == nullptr) {
      note(planned->refusal);
      return;
    }
    const ConvTensors tensors = find_tensors();
    if (!is_aligned(tensors.image) || !is_aligned(tensors.weight) || !is_aligned(tensors.map)) {
      note("memory that is not aligned to 16 bytes");
      return;
    }
    CudnnMemory memory;
    memory.put(planned->tensors.image, tensors.image);
    memory.put(planned->tensors.weight, tensors.weight);
    memory.put(planned->tensors.map, tensors.map);
    const Workspace workspace(planned->plan->workspace());
    library.check(library.loaded().functions.cudnnSetStream(handle, call.stream), "cudnnSetStream");
    planned->plan->run(library, handle, memory.uids(), memory.addresses(), workspace.data());
    done = true;
  });
  if (!reason.empty()) note(reason);
  return done;
}

}  // namespace lockstep::cuda

#else  // without cuDNN's header

namespace lockstep::cuda {

bool convolve_by_cudnn(ConvResult, const ConvProblem& problem, bool, FunctionRef<ConvTensors()>) {
  if (problem.dtype != DType::kF64) {
    note_without_cudnn("convolutions", "this build found no cudnn_graph.h");
  }
  return false;
}

}  // namespace lockstep::cuda

#endif

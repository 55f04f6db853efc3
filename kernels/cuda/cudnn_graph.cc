#include "kernels/cuda/cudnn_graph.h"

#ifdef LS_HAS_CUDNN

#include <algorithm>
#include <array>
#include <utility>

#include "core/base/check.h"

namespace lockstep::cuda {

namespace {

/// Alignment of the memory of a graph's tensors, which callers must ensure.
constexpr int64_t kAlignment = 16;

void accept(const Cudnn& functions, cudnnStatus_t status, const char* what, int number) {
  if (status == CUDNN_STATUS_SUCCESS) [[likely]]
    return;
  throw CudnnRefusal(fmt::format("{} {}: {} ({})", what, number,
                                 functions.cudnnGetErrorString(status),
                                 last_error_message(functions)));
}

}  // namespace

CudnnDescriptor::CudnnDescriptor(const Cudnn& functions, cudnnBackendDescriptorType_t type)
    : functions_(&functions), type_(type) {
  accept(functions, functions.cudnnBackendCreateDescriptor(type, &raw_), "a descriptor of type",
         type);
}

CudnnDescriptor::CudnnDescriptor(CudnnDescriptor&& other) noexcept
    : functions_(other.functions_), type_(other.type_), raw_(std::exchange(other.raw_, nullptr)) {}

CudnnDescriptor::~CudnnDescriptor() {
  if (raw_ != nullptr) functions_->cudnnBackendDestroyDescriptor(raw_);
}

void CudnnDescriptor::set(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type,
                          int64_t count, const void* values) {
  accept(*functions_, functions_->cudnnBackendSetAttribute(raw_, name, type, count, values),
         "attribute", name);
}

void CudnnDescriptor::set(cudnnBackendAttributeName_t name, const CudnnDescriptor& value) {
  set(name, CUDNN_TYPE_BACKEND_DESCRIPTOR, value.raw_);
}

void CudnnDescriptor::set(cudnnBackendAttributeName_t name, std::span<const int64_t> values) {
  set(name, CUDNN_TYPE_INT64, static_cast<int64_t>(values.size()), values.data());
}

void CudnnDescriptor::finalize() {
  accept(*functions_, functions_->cudnnBackendFinalize(raw_), "descriptor type", type_);
}

int64_t CudnnDescriptor::get(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type,
                             int64_t count, void* values) const {
  int64_t there = 0;
  accept(*functions_, functions_->cudnnBackendGetAttribute(raw_, name, type, count, &there, values),
         "attribute", name);
  return there;
}

void CudnnPlan::run(CudnnLibrary& library, cudnnHandle_t handle, std::span<const int64_t> uids,
                    std::span<void* const> addresses, void* workspace) const {
  const Cudnn& functions = library.loaded().functions;
  try {
    CudnnDescriptor pack(functions, CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR);
    pack.set(CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, uids);
    pack.set(CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, CUDNN_TYPE_VOID_PTR,
             static_cast<int64_t>(addresses.size()), addresses.data());
    pack.set(CUDNN_ATTR_VARIANT_PACK_WORKSPACE, CUDNN_TYPE_VOID_PTR, workspace);
    pack.finalize();
    library.check(functions.cudnnBackendExecute(handle, parts_.back().raw(), pack.raw()),
                  "cudnnBackendExecute");
  } catch (const CudnnRefusal& refusal) {
    throw DeviceError(
        fmt::format("[cuda] cuDNN rejected the arguments of its own plan: {}. "
                    "Set LOCKSTEP_CUDNN=0 to run without cuDNN.",
                    refusal.what()));
  }
}

cudnnDataType_t cudnn_data_type(DType dtype) {
  switch (dtype) {
    case DType::kF32:
      return CUDNN_DATA_FLOAT;
    case DType::kF64:
      return CUDNN_DATA_DOUBLE;
    case DType::kBF16:
      return CUDNN_DATA_BFLOAT16;
    case DType::kF16:
      return CUDNN_DATA_HALF;
    default:
      throw CudnnRefusal("integers");
  }
}

CudnnDescriptor& CudnnGraph::part(cudnnBackendDescriptorType_t type) {
  return *parts_.emplace_back(std::make_unique<CudnnDescriptor>(functions_, type));
}

const CudnnDescriptor& CudnnGraph::at(int64_t tensor) const {
  return *tensors_.at(static_cast<size_t>(tensor));
}

int64_t CudnnGraph::add_tensor(cudnnDataType_t dtype, std::span<const int64_t> sizes,
                               std::span<const int64_t> strides, bool is_inner, bool is_scalar) {
  const auto uid = static_cast<int64_t>(tensors_.size());
  auto tensor = std::make_unique<CudnnDescriptor>(functions_, CUDNN_BACKEND_TENSOR_DESCRIPTOR);
  tensor->set(CUDNN_ATTR_TENSOR_DATA_TYPE, CUDNN_TYPE_DATA_TYPE, dtype);
  tensor->set(CUDNN_ATTR_TENSOR_DIMENSIONS, sizes);
  tensor->set(CUDNN_ATTR_TENSOR_STRIDES, strides);
  tensor->set(CUDNN_ATTR_TENSOR_UNIQUE_ID, CUDNN_TYPE_INT64, uid);
  tensor->set(CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, CUDNN_TYPE_INT64, kAlignment);
  if (is_inner) tensor->set(CUDNN_ATTR_TENSOR_IS_VIRTUAL, CUDNN_TYPE_BOOLEAN, true);
  if (is_scalar) tensor->set(CUDNN_ATTR_TENSOR_IS_BY_VALUE, CUDNN_TYPE_BOOLEAN, true);
  tensor->finalize();
  tensors_.push_back(std::move(tensor));
  return uid;
}

int64_t CudnnGraph::tensor(cudnnDataType_t dtype, std::span<const int64_t> sizes,
                           std::span<const int64_t> strides) {
  return add_tensor(dtype, sizes, strides, false, false);
}

int64_t CudnnGraph::inner(cudnnDataType_t dtype, std::span<const int64_t> sizes,
                          std::span<const int64_t> strides) {
  if (!strides.empty()) return add_tensor(dtype, sizes, strides, true, false);
  std::vector<int64_t> row_major(sizes.size(), 1);
  for (size_t d = sizes.size(); d-- > 1;) row_major[d - 1] = row_major[d] * sizes[d];
  return add_tensor(dtype, sizes, row_major, true, false);
}

int64_t CudnnGraph::scalar() {
  constexpr int64_t kOnes[4] = {1, 1, 1, 1};
  return add_tensor(CUDNN_DATA_FLOAT, kOnes, kOnes, false, true);
}

void CudnnGraph::pointwise(cudnnPointwiseMode_t mode, const PointwiseInputs& inputs, int64_t y,
                           cudnnDataType_t computed, int64_t axis) {
  CudnnDescriptor& how = part(CUDNN_BACKEND_POINTWISE_DESCRIPTOR);
  how.set(CUDNN_ATTR_POINTWISE_MODE, CUDNN_TYPE_POINTWISE_MODE, mode);
  how.set(CUDNN_ATTR_POINTWISE_MATH_PREC, CUDNN_TYPE_DATA_TYPE, computed);
  if (axis >= 0) how.set(CUDNN_ATTR_POINTWISE_AXIS, CUDNN_TYPE_INT64, axis);
  how.finalize();
  CudnnDescriptor& operation = part(CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR);
  operation.set(CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR, how);
  operation.set(CUDNN_ATTR_OPERATION_POINTWISE_XDESC, at(inputs.x));
  if (inputs.b >= 0) operation.set(CUDNN_ATTR_OPERATION_POINTWISE_BDESC, at(inputs.b));
  if (inputs.t >= 0) operation.set(CUDNN_ATTR_OPERATION_POINTWISE_TDESC, at(inputs.t));
  operation.set(CUDNN_ATTR_OPERATION_POINTWISE_YDESC, at(y));
  operation.finalize();
  operations_.push_back(operation.raw());
}

void CudnnGraph::matmul(int64_t a, int64_t b, int64_t c) {
  CudnnDescriptor& how = part(CUDNN_BACKEND_MATMUL_DESCRIPTOR);
  how.set(CUDNN_ATTR_MATMUL_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, CUDNN_DATA_FLOAT);
  how.finalize();
  CudnnDescriptor& operation = part(CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR);
  operation.set(CUDNN_ATTR_OPERATION_MATMUL_ADESC, at(a));
  operation.set(CUDNN_ATTR_OPERATION_MATMUL_BDESC, at(b));
  operation.set(CUDNN_ATTR_OPERATION_MATMUL_CDESC, at(c));
  operation.set(CUDNN_ATTR_OPERATION_MATMUL_DESC, how);
  operation.finalize();
  operations_.push_back(operation.raw());
}

void CudnnGraph::reduce(cudnnReduceTensorOp_t op, int64_t x, int64_t y) {
  CudnnDescriptor& how = part(CUDNN_BACKEND_REDUCTION_DESCRIPTOR);
  how.set(CUDNN_ATTR_REDUCTION_OPERATOR, CUDNN_TYPE_REDUCTION_OPERATOR_TYPE, op);
  how.set(CUDNN_ATTR_REDUCTION_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, CUDNN_DATA_FLOAT);
  how.finalize();
  CudnnDescriptor& operation = part(CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR);
  operation.set(CUDNN_ATTR_OPERATION_REDUCTION_XDESC, at(x));
  operation.set(CUDNN_ATTR_OPERATION_REDUCTION_YDESC, at(y));
  operation.set(CUDNN_ATTR_OPERATION_REDUCTION_DESC, how);
  operation.finalize();
  operations_.push_back(operation.raw());
}

void CudnnGraph::reshape(int64_t x, int64_t y) {
  CudnnDescriptor& operation = part(CUDNN_BACKEND_OPERATION_RESHAPE_DESCRIPTOR);
  operation.set(CUDNN_ATTR_OPERATION_RESHAPE_XDESC, at(x));
  operation.set(CUDNN_ATTR_OPERATION_RESHAPE_YDESC, at(y));
  operation.finalize();
  operations_.push_back(operation.raw());
}

void CudnnGraph::convolution(const Convolution& c) {
  CudnnDescriptor& how = part(CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR);
  how.set(CUDNN_ATTR_CONVOLUTION_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, CUDNN_DATA_FLOAT);
  how.set(CUDNN_ATTR_CONVOLUTION_CONV_MODE, CUDNN_TYPE_CONVOLUTION_MODE, CUDNN_CROSS_CORRELATION);
  how.set(CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS, CUDNN_TYPE_INT64,
          static_cast<int64_t>(c.stride.size()));
  how.set(CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES, c.stride);
  how.set(CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, c.padding);
  how.set(CUDNN_ATTR_CONVOLUTION_POST_PADDINGS, c.padding);
  how.set(CUDNN_ATTR_CONVOLUTION_DILATIONS, c.dilation);
  how.finalize();
  struct Names {
    cudnnBackendAttributeName_t how, image, weight, map, alpha, beta;
  };
  const auto names = [&]() -> Names {
    switch (c.direction) {
      case CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR:
        return {CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_CONV_DESC,
                CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX,
                CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_W,
                CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DY,
                CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_ALPHA,
                CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_BETA};
      case CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR:
        return {CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_CONV_DESC,
                CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_X,
                CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DW,
                CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DY,
                CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_ALPHA,
                CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_BETA};
      default:
        return {CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC,
                CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X,
                CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W,
                CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y,
                CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_ALPHA,
                CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_BETA};
    }
  }();
  CudnnDescriptor& operation = part(c.direction);
  operation.set(names.how, how);
  operation.set(names.image, at(c.image));
  operation.set(names.weight, at(c.weight));
  operation.set(names.map, at(c.map));
  operation.set(names.alpha, CUDNN_TYPE_FLOAT, 1.0F);
  operation.set(names.beta, CUDNN_TYPE_FLOAT, 0.0F);
  operation.finalize();
  operations_.push_back(operation.raw());
}

const CudnnDescriptor& CudnnGraph::finished(const CudnnTarget& target) {
  if (graph_) return *graph_;
  CudnnDescriptor& graph = graph_.emplace(functions_, CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR);
  graph.set(CUDNN_ATTR_OPERATIONGRAPH_OPS, CUDNN_TYPE_BACKEND_DESCRIPTOR,
            static_cast<int64_t>(operations_.size()), operations_.data());
  if (target.handle != nullptr) {
    graph.set(CUDNN_ATTR_OPERATIONGRAPH_HANDLE, CUDNN_TYPE_HANDLE, target.handle);
  }
  graph.finalize();
  return graph;
}

std::vector<CudnnEngine> CudnnGraph::engines(const CudnnTarget& target,
                                             cudnnBackendHeurMode_t mode) {
  constexpr int64_t kMost = 24;
  CudnnDescriptor advice(functions_, CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR);
  advice.set(CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, finished(target));
  advice.set(CUDNN_ATTR_ENGINEHEUR_MODE, CUDNN_TYPE_HEUR_MODE, mode);
  if (target.properties != nullptr) {
    advice.set(CUDNN_ATTR_ENGINEHEUR_DEVICEPROP, *target.properties);
  }
  advice.finalize();
  std::vector<CudnnDescriptor> found;
  std::array<cudnnBackendDescriptor_t, kMost> raw{};
  for (cudnnBackendDescriptor_t& each : raw) {
    each = found.emplace_back(functions_, CUDNN_BACKEND_ENGINECFG_DESCRIPTOR).raw();
  }
  const int64_t count =
      advice.get(CUDNN_ATTR_ENGINEHEUR_RESULTS, CUDNN_TYPE_BACKEND_DESCRIPTOR, kMost, raw.data());
  std::vector<CudnnEngine> engines;
  for (int64_t i = 0; i < std::min(count, kMost); ++i) {
    engines.emplace_back(functions_, std::move(found[static_cast<size_t>(i)]));
  }
  return engines;
}

CudnnDescriptor CudnnGraph::plan_of(const CudnnTarget& target, const CudnnEngine& engine) const {
  CudnnDescriptor plan(functions_, CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR);
  plan.set(CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, engine.configuration);
  if (target.handle != nullptr) {
    plan.set(CUDNN_ATTR_EXECUTION_PLAN_HANDLE, CUDNN_TYPE_HANDLE, target.handle);
  }
  if (target.properties != nullptr) {
    plan.set(CUDNN_ATTR_EXECUTION_PLAN_DEVICEPROP, *target.properties);
  }
  plan.finalize();
  return plan;
}

std::shared_ptr<const CudnnPlan> CudnnGraph::plan(const CudnnTarget& target,
                                                  const CudnnRules& rules) {
  std::string refusals;
  for (const cudnnBackendHeurMode_t mode : {CUDNN_HEUR_MODE_A, CUDNN_HEUR_MODE_FALLBACK}) {
    std::vector<CudnnEngine> advised;
    try {
      advised = engines(target, mode);
    } catch (const CudnnRefusal& refusal) {
      refusals += fmt::format("; heuristics {}: {}", static_cast<int>(mode), refusal.what());
    }
    for (CudnnEngine& engine : advised) {
      const std::string forbidden = rules.forbids(engine);
      if (!forbidden.empty()) {
        refusals += fmt::format("; engine {} {}", engine.number, forbidden);
        continue;
      }
      try {
        CudnnDescriptor plan = plan_of(target, engine);
        int64_t workspace = 0;
        plan.get(CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE, CUDNN_TYPE_INT64, 1, &workspace);
        std::vector<CudnnDescriptor> kept;
        for (auto& tensor : tensors_) kept.push_back(std::move(*tensor));
        for (auto& part : parts_) kept.push_back(std::move(*part));
        kept.push_back(std::move(*graph_));
        kept.push_back(std::move(engine.configuration));
        kept.push_back(std::move(plan));
        return std::make_shared<CudnnPlan>(std::move(kept), static_cast<size_t>(workspace),
                                           engine.number);
      } catch (const CudnnRefusal& refusal) {
        refusals += fmt::format("; engine {}: {}", engine.number, refusal.what());
      }
    }
  }
  throw CudnnRefusal("no engine" + refusals);
}

CudnnEngine::CudnnEngine(const Cudnn& functions, CudnnDescriptor advised)
    : configuration(std::move(advised)) {
  CudnnDescriptor engine(functions, CUDNN_BACKEND_ENGINE_DESCRIPTOR);
  cudnnBackendDescriptor_t raw = engine.raw();
  configuration.get(CUDNN_ATTR_ENGINECFG_ENGINE, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &raw);
  engine.get(CUDNN_ATTR_ENGINE_GLOBAL_INDEX, CUDNN_TYPE_INT64, 1, &number);
  configuration.get(CUDNN_ATTR_ENGINECFG_WORKSPACE_SIZE, CUDNN_TYPE_INT64, 1, &workspace);
  std::array<cudnnBackendNumericalNote_t, CUDNN_NUMERICAL_NOTE_TYPE_COUNT> notes{};
  const int64_t count = engine.get(CUDNN_ATTR_ENGINE_NUMERICAL_NOTE, CUDNN_TYPE_NUMERICAL_NOTE,
                                   CUDNN_NUMERICAL_NOTE_TYPE_COUNT, notes.data());
  for (int64_t i = 0; i < std::min<int64_t>(count, CUDNN_NUMERICAL_NOTE_TYPE_COUNT); ++i) {
    const cudnnBackendNumericalNote_t note = notes[static_cast<size_t>(i)];
    deterministic = deterministic && note != CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC;
    rounds_inputs = rounds_inputs || note == CUDNN_NUMERICAL_NOTE_DOWN_CONVERT_INPUTS;
    narrow_sums = narrow_sums || note == CUDNN_NUMERICAL_NOTE_REDUCED_PRECISION_REDUCTION;
    transforms =
        transforms || note == CUDNN_NUMERICAL_NOTE_FFT || note == CUDNN_NUMERICAL_NOTE_WINOGRAD;
    tensor_cores = tensor_cores || note == CUDNN_NUMERICAL_NOTE_TENSOR_CORE;
  }
}

std::string CudnnRules::forbids(const CudnnEngine& engine) const {
  if (!engine.deterministic) return "is not deterministic";
  if (engine.rounds_inputs && !tf32) return "rounds its inputs";
  if (engine.narrow_sums) return "rounds its sums";
  if (engine.transforms) return "uses Fourier or Winograd transforms";
  if (f32 && engine.tensor_cores && !tf32) return "multiplies f32 on tensor cores";
  if (engine.workspace > most_workspace) {
    return fmt::format("needs {} MB of workspace", engine.workspace >> 20);
  }
  return {};
}

CudnnDescriptor cudnn_properties(const Cudnn& functions, const std::string& json) {
  CudnnDescriptor properties(functions, CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR);
  // The size includes the terminating zero.
  properties.set(CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION, CUDNN_TYPE_CHAR,
                 static_cast<int64_t>(json.size()) + 1, json.c_str());
  properties.finalize();
  return properties;
}

}  // namespace lockstep::cuda

#endif  // LS_HAS_CUDNN

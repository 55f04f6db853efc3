#pragma once

#include "core/cuda/cudnn.h"

#ifdef LS_HAS_CUDNN

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "core/tensor/dtype.h"
#include "core/tensor/shape.h"

namespace lockstep::cuda {

/// Thrown if cuDNN does not support a problem; what() is the library's message. It is not a program
/// error: our own kernels compute the problem instead.
class CudnnRefusal : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// Owns a cuDNN backend descriptor. Functions throw CudnnRefusal.
class CudnnDescriptor {
 public:
  CudnnDescriptor(const Cudnn& functions, cudnnBackendDescriptorType_t type);
  CudnnDescriptor(CudnnDescriptor&& other) noexcept;
  CudnnDescriptor& operator=(CudnnDescriptor&&) = delete;
  ~CudnnDescriptor();

  void set(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type, int64_t count,
           const void* values);
  template <class T>
  void set(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type, const T& value) {
    set(name, type, 1, &value);
  }
  void set(cudnnBackendAttributeName_t name, const CudnnDescriptor& value);
  void set(cudnnBackendAttributeName_t name, std::span<const int64_t> values);
  void finalize();
  /// Reads up to `count` elements of an attribute; returns how many it has.
  int64_t get(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type, int64_t count,
              void* values) const;

  cudnnBackendDescriptor_t raw() const { return raw_; }

 private:
  const Cudnn* functions_;
  cudnnBackendDescriptorType_t type_;
  cudnnBackendDescriptor_t raw_ = nullptr;
};

/// The device a plan is made for: a real one by its handle, or one described by its properties.
struct CudnnTarget {
  cudnnHandle_t handle = nullptr;
  const CudnnDescriptor* properties = nullptr;
};

/// A cuDNN engine configured for a graph, with the properties that the library reports.
struct CudnnEngine {
  CudnnDescriptor configuration;
  int64_t number = -1;
  int64_t workspace = 0;       ///< in bytes
  bool deterministic = true;   ///< equal calls give equal bits
  bool rounds_inputs = false;  ///< may convert inputs to a narrower dtype
  bool narrow_sums = false;    ///< accumulates in less precision than requested
  bool transforms = false;     ///< uses Fourier or Winograd transforms
  bool tensor_cores = false;

  CudnnEngine(const Cudnn& functions, CudnnDescriptor advised);
};

/// Conditions that an engine must meet to be used.
struct CudnnRules {
  bool f32 = false;   ///< the tensors are f32
  bool tf32 = false;  ///< f32 factors may be rounded to a 10-bit mantissa
  int64_t most_workspace = int64_t{4} << 30;

  /// Returns why `engine` may not be used, or "" if it may.
  std::string forbids(const CudnnEngine& engine) const;
};

/// A graph compiled for a cuDNN engine. Immutable.
class CudnnPlan {
 public:
  CudnnPlan(std::vector<CudnnDescriptor> parts, size_t workspace, int64_t engine)
      : parts_(std::move(parts)), workspace_(workspace), engine_(engine) {}

  /// Bytes of device memory needed while the plan runs.
  size_t workspace() const { return workspace_; }
  int64_t engine() const { return engine_; }
  /// Queues the plan on the handle's stream. `addresses[i]` is the memory of the tensor `uids[i]`,
  /// in host memory for a scalar. Throws DeviceError.
  void run(CudnnLibrary& library, cudnnHandle_t handle, std::span<const int64_t> uids,
           std::span<void* const> addresses, void* workspace) const;

 private:
  std::vector<CudnnDescriptor> parts_;  ///< the last is the plan, the others what it references
  size_t workspace_;
  int64_t engine_;
};

cudnnDataType_t cudnn_data_type(DType dtype);

/// Operations and the tensors between them, in topological order. Tensors are numbered from 0.
/// Functions throw CudnnRefusal.
class CudnnGraph {
 public:
  explicit CudnnGraph(const Cudnn& functions) : functions_(functions) {}

  /// Adds a tensor in memory that is aligned to 16 bytes; returns its number.
  int64_t tensor(cudnnDataType_t dtype, std::span<const int64_t> sizes,
                 std::span<const int64_t> strides);
  /// Adds a virtual tensor between operations, which is never stored. Row-major unless strides are
  /// given.
  int64_t inner(cudnnDataType_t dtype, std::span<const int64_t> sizes,
                std::span<const int64_t> strides = {});
  /// Adds an f32 scalar in host memory.
  int64_t scalar();

  struct PointwiseInputs {
    int64_t x = -1, b = -1, t = -1;
  };
  void pointwise(cudnnPointwiseMode_t mode, const PointwiseInputs& inputs, int64_t y,
                 cudnnDataType_t computed = CUDNN_DATA_FLOAT, int64_t axis = -1);
  void matmul(int64_t a, int64_t b, int64_t c);
  /// Reduces x along the dimensions that are smaller in y, to 1 or to groups (heads sharing a key).
  void reduce(cudnnReduceTensorOp_t op, int64_t x, int64_t y);
  void reshape(int64_t x, int64_t y);

  struct Convolution {
    std::span<const int64_t> stride, padding, dilation;
    int64_t image, weight, map;
    cudnnBackendDescriptorType_t direction;  ///< CUDNN_BACKEND_OPERATION_CONVOLUTION_...
  };
  /// Adds a convolution with f32 accumulation.
  void convolution(const Convolution& convolution);

  /// Returns the engines that cuDNN's heuristics recommend, best first. Finalises the graph for one
  /// target.
  std::vector<CudnnEngine> engines(const CudnnTarget& target, cudnnBackendHeurMode_t mode);
  /// The finalised plan of one of those engines: its kernels are chosen or compiled, and loaded.
  CudnnDescriptor plan_of(const CudnnTarget& target, const CudnnEngine& engine) const;
  /// Builds a plan with the first recommended engine that the rules allow. Consumes the graph.
  std::shared_ptr<const CudnnPlan> plan(const CudnnTarget& target, const CudnnRules& rules);

 private:
  int64_t add_tensor(cudnnDataType_t dtype, std::span<const int64_t> sizes,
                     std::span<const int64_t> strides, bool is_inner, bool is_scalar);
  CudnnDescriptor& part(cudnnBackendDescriptorType_t type);
  const CudnnDescriptor& finished(const CudnnTarget& target);
  const CudnnDescriptor& at(int64_t tensor) const;

  const Cudnn& functions_;
  std::vector<std::unique_ptr<CudnnDescriptor>> tensors_, parts_;
  std::vector<cudnnBackendDescriptor_t> operations_;
  std::optional<CudnnDescriptor> graph_;
};

/// Device properties from their JSON text, for a device that need not be present: plans for it are
/// built up to the loading of their kernels. Requires cuDNN 9.8.
CudnnDescriptor cudnn_properties(const Cudnn& functions, const std::string& json);

}  // namespace lockstep::cuda

#endif  // LS_HAS_CUDNN

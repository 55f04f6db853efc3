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

/// cuDNN does not take what it was given; what() has its words. No error of the program: there are
/// kernels of ours.
class CudnnRefusal : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// A descriptor of cuDNN's, destroyed with this. Functions throw CudnnRefusal.
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
  /// How many of `count` elements there are.
  int64_t get(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type, int64_t count,
              void* values) const;

  cudnnBackendDescriptor_t raw() const { return raw_; }

 private:
  const Cudnn* functions_;
  cudnnBackendDescriptorType_t type_;
  cudnnBackendDescriptor_t raw_ = nullptr;
};

/// What a plan is made for: a device by its handle, or, without one, the properties of a device.
struct CudnnTarget {
  cudnnHandle_t handle = nullptr;
  const CudnnDescriptor* properties = nullptr;
};

/// An engine of cuDNN's, set up for a graph, and what the library says of it.
struct CudnnEngine {
  CudnnDescriptor configuration;
  int64_t number = -1;
  int64_t workspace = 0;       ///< bytes
  bool deterministic = true;   ///< equal calls give equal bits
  bool rounds_inputs = false;  ///< to a narrower dtype than theirs
  bool narrow_sums = false;    ///< of less precision than what was asked for
  bool transforms = false;     ///< multiplies Fourier's or Winograd's transforms
  bool tensor_cores = false;

  CudnnEngine(const Cudnn& functions, CudnnDescriptor advised);
};

/// Which engines may compute.
struct CudnnRules {
  bool f32 = false;   ///< the tensors are of f32
  bool tf32 = false;  ///< whose factors may be rounded to 10 bits of mantissa
  int64_t most_workspace = int64_t{4} << 30;

  /// Why not, or "".
  std::string forbids(const CudnnEngine& engine) const;
};

/// A graph that an engine of cuDNN's was found for. Never changed once it is made.
class CudnnPlan {
 public:
  CudnnPlan(std::vector<CudnnDescriptor> parts, size_t workspace, int64_t engine)
      : parts_(std::move(parts)), workspace_(workspace), engine_(engine) {}

  /// Bytes of the device's memory that it needs while it runs.
  size_t workspace() const { return workspace_; }
  int64_t engine() const { return engine_; }
  /// Queues it on the handle's stream: `addresses[i]` is the memory of the tensor `uids[i]`, on the
  /// host for a scalar. Throws DeviceError.
  void run(CudnnLibrary& library, cudnnHandle_t handle, std::span<const int64_t> uids,
           std::span<void* const> addresses, void* workspace) const;

 private:
  std::vector<CudnnDescriptor> parts_;  ///< the plan is the last; the others are what it refers to
  size_t workspace_;
  int64_t engine_;
};

cudnnDataType_t cudnn_data_type(DType dtype);

/// Operations and the tensors between them, in an order in which they can be computed. Tensors are
/// named by numbers from 0 up. Functions throw CudnnRefusal.
class CudnnGraph {
 public:
  explicit CudnnGraph(const Cudnn& functions) : functions_(functions) {}

  /// In memory aligned to 16 bytes.
  int64_t tensor(cudnnDataType_t dtype, std::span<const int64_t> sizes,
                 std::span<const int64_t> strides);
  /// Between operations, never stored. Row-major unless strides are given.
  int64_t inner(cudnnDataType_t dtype, std::span<const int64_t> sizes,
                std::span<const int64_t> strides = {});
  /// One f32 number on the host.
  int64_t scalar();

  struct PointwiseInputs {
    int64_t x = -1, b = -1, t = -1;
  };
  void pointwise(cudnnPointwiseMode_t mode, const PointwiseInputs& inputs, int64_t y,
                 cudnnDataType_t computed = CUDNN_DATA_FLOAT, int64_t axis = -1);
  void matmul(int64_t a, int64_t b, int64_t c);
  /// Over the dimensions that are 1 in y, or fewer.
  void reduce(cudnnReduceTensorOp_t op, int64_t x, int64_t y);
  void reshape(int64_t x, int64_t y);

  struct Convolution {
    std::span<const int64_t> stride, padding, dilation;
    int64_t image, weight, map;
    cudnnBackendDescriptorType_t direction;  ///< CUDNN_BACKEND_OPERATION_CONVOLUTION_...
  };
  /// Summed in f32.
  void convolution(const Convolution& convolution);

  /// What the library advises, the best first. The graph is finished then, for one target.
  std::vector<CudnnEngine> engines(const CudnnTarget& target, cudnnBackendHeurMode_t mode);
  /// By the first engine that the library advises and the rules allow. The graph is used up.
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

/// Properties of a device that need not be there, from their JSON text: plans for it can be made,
/// not run. Since cuDNN 9.8.
CudnnDescriptor cudnn_properties(const Cudnn& functions, const std::string& json);

}  // namespace lockstep::cuda

#endif  // LS_HAS_CUDNN

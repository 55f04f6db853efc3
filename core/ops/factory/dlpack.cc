#include "core/ops/factory/dlpack.h"

#include <utility>

#include "core/base/check.h"
#include "core/device/device_runtime.h"
#include "core/device/pinned_allocator.h"
#include "core/ops/factory/copy.h"
#include "core/ops/factory/from_blob.h"
#include "core/ops/factory/pinned.h"
#include "core/tensor/storage_extent.h"

namespace lockstep {
namespace {

using namespace dlpack;

constexpr int32_t kMaxRank = 64;  // a higher one is no tensor but memory read by mistake
constexpr uint64_t kKnownFlags = kFlagReadOnly | kFlagIsCopied | kFlagIsSubbyteTypePadded;

// --- element types and devices
// ---------------------------------------------------------------------

DLDataType dlpack_dtype(DType dtype) {
  DLDataTypeCode code = kDLInt;
  if (is_floating(dtype)) code = dtype == DType::kBF16 ? kDLBfloat : kDLFloat;
  if (dtype == DType::kU8) code = kDLUInt;
  if (dtype == DType::kBool) code = kDLBool;
  return {code, static_cast<uint8_t>(8 * size_of(dtype)), 1};
}

DType dtype_from(const DLDataType& foreign) {
  for (int i = 0; i < kDTypeCount; ++i) {
    if (dlpack_dtype(static_cast<DType>(i)) == foreign) return static_cast<DType>(i);
  }
  throw DTypeError(
      fmt::format("[from_dlpack] there is no such element type: expected one of bool, uint8, int8 "
                  "to int64, float16, bfloat16, float32 and float64, got DLPack's code {} with {} "
                  "bits and {} lanes. Convert it in the library that it is from.",
                  foreign.code, foreign.bits, foreign.lanes));
}

Device device_from(const DLDevice& foreign) {
  const bool pinned = foreign.device_type == kDLCUDAHost;
  if (foreign.device_type == kDLCPU || pinned) return kCPU;
  LS_CHECK(foreign.device_type == kDLCUDA, DeviceError,
           "[from_dlpack] the memory is of an unknown device: expected DLPack's kind {} (cpu), {} "
           "(cuda) or {} (pinned by cuda), got kind {}. Copy it to the cpu in the library that it "
           "is from.",
           static_cast<int>(kDLCPU), static_cast<int>(kDLCUDA), static_cast<int>(kDLCUDAHost),
           static_cast<int>(foreign.device_type));
  const int count = device_count(DeviceType::kCUDA);
  LS_CHECK(foreign.device_id >= 0 && foreign.device_id < count, DeviceError,
           "[from_dlpack] the device is not there: expected one of {} cuda devices, got cuda:{}. "
           "Copy it to the cpu in the library that it is from.",
           count, foreign.device_id);
  return {DeviceType::kCUDA, static_cast<int8_t>(foreign.device_id)};
}

// --- import
// ----------------------------------------------------------------------------------------

Dims sizes_from(const DLTensor& foreign) {
  LS_CHECK(foreign.ndim >= 0 && foreign.ndim <= kMaxRank, ShapeError,
           "[from_dlpack] wrong number of dimensions: expected 0 to {}, got {}.", kMaxRank,
           foreign.ndim);
  LS_CHECK(foreign.ndim == 0 || foreign.shape != nullptr, ShapeError,
           "[from_dlpack] the shape is null: expected {} sizes.", foreign.ndim);
  Dims sizes;
  sizes.append(foreign.shape, foreign.shape + foreign.ndim);
  for (const int64_t size : sizes) {
    LS_CHECK(size >= 0, ShapeError, "[from_dlpack] a size is negative: expected none, got {}.",
             to_string(sizes));
  }
  return sizes;
}

/// The foreign strides, but those of dimensions that have no second element: they mean nothing, and
/// some libraries leave negative ones there.
Dims strides_from(const DLTensor& foreign, const Dims& sizes) {
  Dims strides = contiguous_strides(sizes);
  if (foreign.strides == nullptr || count_elements(sizes) == 0) return strides;
  for (size_t i = 0; i < sizes.size(); ++i) {
    if (sizes[i] == 1) continue;
    strides[i] = foreign.strides[i];
    LS_CHECK(strides[i] >= 0, ShapeError,
             "[from_dlpack] the stride of dimension {} is negative: expected none, got {}. Copy "
             "the array in the library that it is from (numpy.ascontiguousarray).",
             i, strides[i]);
  }
  return strides;
}

/// The tensor over the memory, which `managed` keeps.
template <class Managed>
Tensor shared(Managed managed) {
  const DLTensor& foreign = managed->dl_tensor;
  const Device device = device_from(foreign.device);
  const DType dtype = dtype_from(foreign.dtype);
  const Dims sizes = sizes_from(foreign);
  const Dims strides = strides_from(foreign, sizes);
  const size_t bytes =
      storage_bytes("from_dlpack", storage_extent("from_dlpack", sizes, strides), dtype);
  if (bytes == 0) return empty_strided_tensor(sizes, strides, dtype, device);
  LS_CHECK(foreign.data != nullptr, DeviceError,
           "[from_dlpack] the address is null: expected memory of {} bytes for {}.", bytes,
           to_string(sizes));
  std::byte* const data = static_cast<std::byte*>(foreign.data) + foreign.byte_offset;
  LS_CHECK(reinterpret_cast<uintptr_t>(data) % size_of(dtype) == 0, DeviceError,
           "[from_dlpack] the memory is not aligned: expected an address that is a multiple of {}, "
           "got {}. Copy the array in the library that it is from.",
           size_of(dtype), fmt::ptr(data));
  // A std::function must be copyable; of its copies the last one to go releases the memory.
  std::shared_ptr<void> keeper = std::move(managed);
  return from_blob(
      data, sizes, strides, [keeper = std::move(keeper)](void*) mutable { keeper.reset(); },
      TensorOptions(dtype, device));
}

// --- export
// ----------------------------------------------------------------------------------------

/// One exported tensor: what the foreign library is given, and what it points to.
template <class Form>
struct Exported {
  Form managed{};
  Ref<Storage> memory;
  Dims sizes;
  Dims strides;
};

void check_exportable(const Tensor& self) {
  LS_CHECK(!self.requires_grad(), AutogradError,
           "[to_dlpack] the tensor requires grad, and other libraries' changes are not recorded: "
           "expected one that does not, got {}. Export its detach().",
           to_string(self));
  LS_CHECK(!self.impl()->batch, AutogradError,
           "[to_dlpack] a tensor inside vmap has no memory of its own: expected one outside.");
}

/// `self`, or the copy that the options ask for.
Tensor wanted(const Tensor& self, const DLPackOptions& options) {
  const Device device = options.device.value_or(self.device());
  if (device == self.device()) return options.copy ? self.clone() : self;
  LS_CHECK(device == kCPU, DeviceError,
           "[to_dlpack] cannot export to {}: expected cpu or the tensor's own device, {}. Copy the "
           "tensor first.",
           to_string(device), to_string(self.device()));
  return self.to(device);
}

template <class Form>
std::unique_ptr<Form, Release> exported(const Tensor& tensor, const DLPackOptions& options) {
  auto made = std::make_unique<Exported<Form>>();
  made->memory = tensor.storage();
  made->sizes = to_dims(tensor.sizes());
  made->strides = to_dims(tensor.strides());
  DLTensor& out = made->managed.dl_tensor;
  out.data = tensor.numel() == 0 ? nullptr : tensor.data();
  out.device = dlpack_device(tensor);
  // Memory of the cpu that somebody pinned is memory of the cpu for who asks for that.
  if (options.device == kCPU) out.device.device_type = kDLCPU;
  out.ndim = static_cast<int32_t>(tensor.dim());
  out.dtype = dlpack_dtype(tensor.dtype());
  out.shape = made->sizes.data();
  out.strides = made->strides.data();
  if (options.consumer && is_asynchronous(tensor.device().type)) {
    options.consumer->wait_stream(current_stream(tensor.device()));
  }
  made->managed.manager_ctx = made.get();
  made->managed.deleter = [](Form* form) {
    delete static_cast<Exported<Form>*>(form->manager_ctx);
  };
  return std::unique_ptr<Form, Release>(&made.release()->managed);
}

}  // namespace

namespace dlpack {

void Release::operator()(DLManagedTensorVersioned* managed) const noexcept {
  if (managed->deleter != nullptr) managed->deleter(managed);
}
void Release::operator()(DLManagedTensor* managed) const noexcept {
  if (managed->deleter != nullptr) managed->deleter(managed);
}

}  // namespace dlpack

DLDevice dlpack_device(const Tensor& self) {
  const Device device = self.device();
  if (device.type == DeviceType::kCUDA) return {kDLCUDA, device.index};
  LS_CHECK(device == kCPU, DeviceError,
           "[to_dlpack] other libraries cannot use the memory: expected a tensor on cpu or cuda, "
           "got {}. Copy it to the cpu.",
           to_string(self));
  const bool by_cuda = is_pinned(self) && pinning_device().type == DeviceType::kCUDA;
  return {by_cuda ? kDLCUDAHost : kDLCPU, 0};
}

Managed to_dlpack(const Tensor& self, const DLPackOptions& options) {
  check_exportable(self);
  (void)dlpack_device(self);  // no copy for a device that cannot be exported
  const Tensor tensor = wanted(self, options);
  Managed managed = exported<DLManagedTensorVersioned>(tensor, options);
  managed->version = {kMajorVersion, kMinorVersion};
  managed->flags = tensor.is_same(self) ? 0 : kFlagIsCopied;
  return managed;
}

ManagedUnversioned to_dlpack_unversioned(const Tensor& self, const DLPackOptions& options) {
  check_exportable(self);
  (void)dlpack_device(self);
  return exported<DLManagedTensor>(wanted(self, options), options);
}

Tensor from_dlpack(DLManagedTensorVersioned* foreign, ReadOnlyMemory read_only) {
  LS_CHECK(foreign != nullptr, DeviceError,
           "[from_dlpack] expected a DLManagedTensorVersioned, "
           "got null.");
  Managed managed(foreign);
  // Of another major version only the deleter may be used.
  LS_CHECK(
      foreign->version.major == kMajorVersion, DeviceError,
      "[from_dlpack] another version of DLPack: expected {}.x, got {}.{}. Ask the exporter for "
      "an older one (max_version).",
      kMajorVersion, foreign->version.major, foreign->version.minor);
  LS_CHECK((foreign->flags & ~kKnownFlags) == 0, DeviceError,
           "[from_dlpack] the tensor has flags of unknown meaning: expected none but {:#x}, got "
           "{:#x}. Copy it in the library that it is from.",
           kKnownFlags, foreign->flags);
  const bool protect = (foreign->flags & kFlagReadOnly) != 0 && read_only != ReadOnlyMemory::kShare;
  LS_CHECK(!protect || read_only == ReadOnlyMemory::kCopy, DeviceError,
           "[from_dlpack] the memory is read-only: expected memory that may be written. Import a "
           "copy (ReadOnlyMemory::kCopy), or share it and do not write into it (kShare).");
  const Tensor tensor = shared(std::move(managed));
  return protect ? tensor.clone() : tensor;
}

Tensor from_dlpack(DLManagedTensor* foreign) {
  LS_CHECK(foreign != nullptr, DeviceError, "[from_dlpack] expected a DLManagedTensor, got null.");
  return shared(ManagedUnversioned(foreign));
}

}  // namespace lockstep

#pragma once

#include <cstdint>

/// The C structures of DLPack 1.1, as `include/dlpack/dlpack.h` of github.com/dmlc/dlpack lays them
/// out, under that header's names. They are ours because a program may include that header as
/// well; pointers to its structures may be cast to pointers to these.
namespace lockstep::dlpack {

inline constexpr uint32_t kMajorVersion = 1;
inline constexpr uint32_t kMinorVersion = 1;

struct DLPackVersion {
  uint32_t major;
  uint32_t minor;
};

/// Only the kinds that Lockstep exchanges; others are numbers without a name here.
enum DLDeviceType : int32_t {
  kDLCPU = 1,
  kDLCUDA = 2,
  kDLCUDAHost = 3,  ///< memory of the cpu that CUDA pinned
};

struct DLDevice {
  DLDeviceType device_type;
  int32_t device_id;

  friend bool operator==(const DLDevice&, const DLDevice&) = default;
};

enum DLDataTypeCode : uint8_t {
  kDLInt = 0,
  kDLUInt = 1,
  kDLFloat = 2,
  kDLBfloat = 4,
  kDLBool = 6,
};

struct DLDataType {
  uint8_t code;
  uint8_t bits;
  uint16_t lanes;  ///< elements of a vector type; 1 for numbers

  friend bool operator==(const DLDataType&, const DLDataType&) = default;
};

struct DLTensor {
  void* data;
  DLDevice device;
  int32_t ndim;
  DLDataType dtype;
  int64_t* shape;
  int64_t* strides;  ///< in elements; null for row-major
  uint64_t byte_offset;
};

struct DLManagedTensor {
  DLTensor dl_tensor;
  void* manager_ctx;
  void (*deleter)(DLManagedTensor* self);
};

inline constexpr uint64_t kFlagReadOnly = 1 << 0;
/// A copy made by the exporter, which the importer alone uses.
inline constexpr uint64_t kFlagIsCopied = 1 << 1;
/// Only for element types of less than a byte.
inline constexpr uint64_t kFlagIsSubbyteTypePadded = 1 << 2;

/// Up to `flags` the same in every version, so that the deleter can always be called.
struct DLManagedTensorVersioned {
  DLPackVersion version;
  void* manager_ctx;
  void (*deleter)(DLManagedTensorVersioned* self);
  uint64_t flags;
  DLTensor dl_tensor;
};

}  // namespace lockstep::dlpack

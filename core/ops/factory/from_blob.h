#pragma once

#include <functional>

#include "core/tensor/tensor.h"

namespace lockstep {

// Tensors over memory of the caller's, which is neither copied nor freed. It must outlive the
// tensor and all its views, and hold elements of the options' dtype (default float32) on their
// device (default cpu), in row-major order unless strides, in elements, say otherwise. Such a
// tensor cannot be resized to more elements. Throws ShapeError for sizes and strides of different
// length or below 0, DeviceError for null memory with elements.

Tensor from_blob(void* data, IntList sizes, const TensorOptions& options = {});
Tensor from_blob(void* data, IntList sizes, IntList strides, const TensorOptions& options = {});
/// Calls `deleter` with `data`, once, when the last tensor over it is gone, on the thread where
/// that happens; it must not throw. The call also happens if from_blob throws. On a device with
/// streams it comes after the work queued on the stream that was current here, and on those that
/// `record_stream` named: the thread waits for it.
Tensor from_blob(void* data, IntList sizes, std::function<void(void*)> deleter,
                 const TensorOptions& options = {});
Tensor from_blob(void* data, IntList sizes, IntList strides, std::function<void(void*)> deleter,
                 const TensorOptions& options = {});

}  // namespace lockstep

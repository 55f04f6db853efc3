#include "core/ops/factory/dlpack.h"

#include <gtest/gtest.h>

#include <thread>
#include <utility>

#include "core/base/error.h"
#include "core/ops/factory/copy.h"
#include "core/ops/factory/factory.h"
#include "core/ops/factory/literal.h"
#include "core/ops/view/view.h"
#include "tests/core/expect_error.h"
#include "tests/core/ops/factory/foreign_dlpack.h"

namespace lockstep {
namespace {

using dlpack::DLDataType;
using dlpack::DLDeviceType;

TEST(DlpackImport, SharesTheMemoryAndReleasesItAfterTheLastView) {
  ForeignVersioned foreign;
  {
    Tensor row;
    {
      const Tensor x = from_dlpack(&foreign.form);
      EXPECT_EQ(x.data(), foreign.elements.data());
      EXPECT_EQ(to_string(x), "float32[2, 3] on cpu");
      row = x[1];
    }
    foreign.elements[4] = 40;
    EXPECT_EQ(row[1].item<float>(), 40);
    EXPECT_EQ(foreign.released, 0);
  }
  EXPECT_EQ(foreign.released, 1);
}

TEST(DlpackImport, WithoutStridesIsRowMajor) {
  ForeignUnversioned foreign;
  foreign->strides = nullptr;
  const Tensor x = from_dlpack(&foreign.form);
  EXPECT_EQ(x.stride(0), 3);
  EXPECT_EQ(x[1][2].item<float>(), 5);
}

TEST(DlpackImport, TakesStridesAndAByteOffset) {
  ForeignVersioned foreign;
  foreign.sizes = {2, 2};
  foreign.strides = {1, 2};
  foreign->shape = foreign.sizes.data();
  foreign->strides = foreign.strides.data();
  foreign->byte_offset = 2 * sizeof(float);
  const Tensor x = from_dlpack(&foreign.form);
  EXPECT_EQ(x.data(), foreign.elements.data() + 2);
  EXPECT_EQ(x[1][0].item<float>(), 3);
  EXPECT_EQ(x[0][1].item<float>(), 4);
}

TEST(DlpackImport, StridesOfSingleElementsMayBeAnything) {
  ForeignVersioned foreign;
  foreign.sizes = {1, 3};
  foreign.strides = {-3, 1};
  const Tensor x = from_dlpack(&foreign.form);
  EXPECT_EQ(x[0][2].item<float>(), 2);
  EXPECT_TRUE(x.is_contiguous());
}

TEST(DlpackImport, WithoutElementsNeedsNoMemory) {
  ForeignVersioned foreign;
  foreign.sizes = {0, 3};
  foreign->data = nullptr;
  const Tensor x = from_dlpack(&foreign.form);
  EXPECT_EQ(x.shape(), "[0, 3]");
  EXPECT_EQ(foreign.released, 1);
}

TEST(DlpackImport, PinnedMemoryIsMemoryOfTheCpu) {
  ForeignVersioned foreign;
  foreign->device.device_type = dlpack::kDLCUDAHost;
  EXPECT_EQ(from_dlpack(&foreign.form).device(), kCPU);
}

TEST(DlpackImport, ADeleterMayBeAbsent) {
  ForeignVersioned foreign;
  foreign.form.deleter = nullptr;
  EXPECT_EQ(from_dlpack(&foreign.form)[0][1].item<float>(), 1);
}

TEST(DlpackImport, TheDeleterRunsOnTheThreadThatLetsGo) {
  ForeignVersioned foreign;
  Tensor x = from_dlpack(&foreign.form);
  std::thread([taken = std::exchange(x, {})]() mutable { taken = {}; }).join();
  EXPECT_EQ(foreign.released, 1);
}

TEST(DlpackImport, ReadOnlyMemoryIsRefusedCopiedOrShared) {
  ForeignVersioned refused, copied, shared;
  for (ForeignVersioned* each : {&refused, &copied, &shared}) {
    each->form.flags = dlpack::kFlagReadOnly;
  }
  expect_error<DeviceError>([&] { from_dlpack(&refused.form); }, "[from_dlpack]", "read-only",
                            "kCopy");
  EXPECT_EQ(refused.released, 1);
  const Tensor copy = from_dlpack(&copied.form, ReadOnlyMemory::kCopy);
  EXPECT_EQ(copied.released, 1);
  copy.fill_(7);
  EXPECT_EQ(copied.elements[0], 0);
  EXPECT_EQ(from_dlpack(&shared.form, ReadOnlyMemory::kShare).data(), shared.elements.data());
}

/// Expects that the changed tensor is refused with E, and released once.
template <class E, class Foreign = ForeignVersioned, class Change, class... Parts>
void expect_refused(const Change& change, const Parts&... parts) {
  Foreign foreign;
  change(foreign);
  expect_error<E>([&] { from_dlpack(&foreign.form); }, "[from_dlpack]", parts...);
  EXPECT_EQ(foreign.released, 1);
}

TEST(DlpackImport, UnknownElementTypesAreRefused) {
  for (const DLDataType dtype : {DLDataType{5, 64, 1}, DLDataType{dlpack::kDLFloat, 32, 4},
                                 DLDataType{dlpack::kDLFloat, 8, 1},
                                 DLDataType{dlpack::kDLUInt, 32, 1}, DLDataType{200, 32, 1}}) {
    const auto change = [&](ForeignVersioned& f) { f->dtype = dtype; };
    expect_refused<DTypeError>(change, "element type", "code " + std::to_string(dtype.code),
                               std::to_string(dtype.lanes) + " lanes");
  }
}

TEST(DlpackImport, UnknownAndAbsentDevicesAreRefused) {
  using F = ForeignVersioned;
  expect_refused<DeviceError>([](F& f) { f->device.device_type = DLDeviceType{10}; }, "kind 10");
  expect_refused<DeviceError>([](F& f) { f->device = {dlpack::kDLCUDA, 1000}; }, "cuda:1000");
  expect_refused<DeviceError>([](F& f) { f->device = {dlpack::kDLCUDA, -1}; }, "not there");
}

TEST(DlpackImport, WrongGeometryIsRefused) {
  using F = ForeignVersioned;
  expect_refused<ShapeError>([](F& f) { f.sizes[1] = -3; }, "size is negative", "[2, -3]");
  expect_refused<ShapeError>([](F& f) { f.strides[0] = -3; }, "dimension 0", "got -3");
  expect_refused<ShapeError>([](F& f) { f->ndim = -1; }, "got -1");
  expect_refused<ShapeError>([](F& f) { f->ndim = 1 << 30; }, "dimensions");
  expect_refused<ShapeError>([](F& f) { f->shape = nullptr; }, "shape is null");
  expect_refused<ShapeError>([](F& f) { f.strides[0] = INT64_MAX; });
  expect_refused<ShapeError, ForeignUnversioned>([](ForeignUnversioned& f) { f.sizes[0] = -2; },
                                                 "negative");
}

TEST(DlpackImport, MemoryThatIsNullOrNotAlignedIsRefused) {
  using F = ForeignVersioned;
  expect_refused<DeviceError>([](F& f) { f->data = nullptr; }, "null", "24 bytes");
  expect_refused<DeviceError>([](F& f) { f->byte_offset = 2; }, "not aligned", "multiple of 4");
}

TEST(DlpackImport, OtherMajorVersionsAndUnknownFlagsAreRefused) {
  using F = ForeignVersioned;
  // Nothing but the deleter may be read then.
  expect_refused<DeviceError>(
      [](F& f) {
        f.form.version = {2, 3};
        f->shape = reinterpret_cast<int64_t*>(1);
      },
      "expected 1.x, got 2.3");
  expect_refused<DeviceError>([](F& f) { f.form.version = {0, 8}; }, "got 0.8");
  expect_refused<DeviceError>([](F& f) { f.form.flags = 1 << 9; }, "0x200");
  ForeignVersioned newer;
  newer.form.version.minor = 99;
  EXPECT_EQ(from_dlpack(&newer.form).numel(), 6);
}

TEST(DlpackImport, NullIsRefused) {
  EXPECT_THROW(from_dlpack(static_cast<dlpack::DLManagedTensor*>(nullptr)), DeviceError);
  EXPECT_THROW(from_dlpack(static_cast<dlpack::DLManagedTensorVersioned*>(nullptr)), DeviceError);
}

TEST(DlpackExport, SharesTheMemoryUntilItIsReleased) {
  dlpack::Managed managed;
  const float* address = nullptr;
  {
    const Tensor x = tensor({1.0F, 2.0F, 3.0F, 4.0F});
    address = x.data<float>() + 1;
    managed = to_dlpack(x.slice(0, 1));
  }
  const dlpack::DLTensor& out = managed->dl_tensor;
  EXPECT_EQ(out.data, address);
  EXPECT_EQ(out.byte_offset, 0u);
  EXPECT_EQ(out.ndim, 1);
  EXPECT_EQ(out.shape[0], 3);
  EXPECT_EQ(out.strides[0], 1);
  EXPECT_EQ(out.device, (dlpack::DLDevice{dlpack::kDLCPU, 0}));
  EXPECT_EQ(out.dtype, (DLDataType{dlpack::kDLFloat, 32, 1}));
  EXPECT_EQ(managed->version.major, 1u);
  EXPECT_EQ(managed->flags, 0u);
  EXPECT_EQ(address[2], 4.0F);
}

TEST(DlpackExport, ReleaseOnAnotherThreadLetsGoOfTheStorage) {
  const Tensor x = zeros({2});
  dlpack::Managed managed = to_dlpack(x);
  EXPECT_EQ(x.storage()->use_count(), 2);
  std::thread([taken = std::move(managed)]() mutable { taken.reset(); }).join();
  EXPECT_EQ(x.storage()->use_count(), 1);
}

TEST(DlpackExport, ACopyIsFlagged) {
  const Tensor x = zeros({2, 3}).t();
  const dlpack::Managed managed = to_dlpack(x, {.copy = true});
  EXPECT_EQ(managed->flags, dlpack::kFlagIsCopied);
  EXPECT_NE(managed->dl_tensor.data, x.data());
  EXPECT_NE(to_dlpack_unversioned(x, {.copy = true})->dl_tensor.data, x.data());
}

TEST(DlpackExport, WithoutElementsHasNoAddress) {
  EXPECT_EQ(to_dlpack(zeros({0, 2}))->dl_tensor.data, nullptr);
}

TEST(DlpackExport, WhatAutogradRecordsIsRefused) {
  const Tensor x = zeros({2});
  x.set_requires_grad();
  expect_error<AutogradError>([&] { (void)to_dlpack(x); }, "[to_dlpack]", "detach()");
  expect_error<AutogradError>([&] { (void)to_dlpack_unversioned(x); }, "detach()");
  EXPECT_EQ(to_dlpack(x.detach())->dl_tensor.data, x.data());
}

TEST(DlpackExport, DevicesThatOthersDoNotKnowAreRefused) {
  for (const char* name : {"meta", "host:0"}) {
    const Tensor x = zeros({2}, parse_device(name));
    expect_error<DeviceError>([&] { (void)to_dlpack(x); }, "[to_dlpack]", name);
    EXPECT_THROW((void)dlpack_device(x), DeviceError);
  }
  expect_error<DeviceError>(
      [] {
        (void)to_dlpack(zeros({2}), {.device = Device{DeviceType::kCUDA, 0}});
      },
      "cuda:0");
}

}  // namespace
}  // namespace lockstep

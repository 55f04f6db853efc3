#include "core/dispatch/row_step.h"

#include <utility>

#include "core/base/check.h"

namespace lockstep {

namespace {

thread_local constinit RowCapture* row_capture = nullptr;

}  // namespace

RowCapture::RowCapture() {
  LS_ASSERT(row_capture == nullptr);
  row_capture = this;
}

RowCapture::~RowCapture() { row_capture = nullptr; }

RowCapture* RowCapture::active() noexcept { return row_capture; }

void RowCapture::take(Taken taken) {
  ++calls_;
  taken_ = std::move(taken);
}

std::optional<RowCapture::Taken> RowCapture::taken() const {
  return calls_ == 1 ? taken_ : std::nullopt;
}

}  // namespace lockstep

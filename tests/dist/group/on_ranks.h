#pragma once

#include <gtest/gtest.h>

#include <exception>
#include <functional>
#include <vector>

#include "core/ops/factory/factory.h"
#include "dist/group/thread_group.h"

namespace lockstep::dist {

/// Expects no error from any rank. `errors` is indexed by rank.
inline void expect_none(const std::vector<std::exception_ptr>& errors) {
  for (size_t rank = 0; rank < errors.size(); ++rank) {
    if (!errors[rank]) continue;
    try {
      std::rethrow_exception(errors[rank]);
    } catch (const std::exception& error) {
      ADD_FAILURE() << "rank " << rank << ": " << error.what();
    }
  }
}

/// Runs `body` on `size` ranks that are threads, and expects no error.
inline void all_ranks(int size, const std::function<void(ProcessGroup&)>& body) {
  expect_none(run_thread_ranks(size, body));
}

/// A vector of ones on the CPU.
inline Tensor cpu_ones(int64_t count, DType dtype = DType::kF32) {
  return empty({count}, dtype).fill_(1);
}

/// Message of an error; "nothing" if null.
inline std::string text_of(const std::exception_ptr& error) {
  try {
    if (error) std::rethrow_exception(error);
  } catch (const std::exception& thrown) {
    return thrown.what();
  }
  return "nothing";
}

}  // namespace lockstep::dist

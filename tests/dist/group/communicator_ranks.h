#pragma once

#include <exception>
#include <functional>
#include <memory>
#include <thread>
#include <vector>

#include "dist/group/communicator.h"
#include "dist/group/transport_group.h"
#include "tests/dist/group/on_ranks.h"

namespace lockstep::dist {

/// Runs `body` on `size` ranks that are threads, and expects no error. Returns rank 0's
/// communicator, whose flight recorder tells what the rank has called.
inline std::shared_ptr<Communicator> all_communicators(
    int size, const std::function<void(ProcessGroup&, Communicator&)>& body) {
  const std::vector<std::shared_ptr<Communicator>> communicators = thread_communicators(size);
  std::vector<std::exception_ptr> errors(communicators.size());
  std::vector<std::thread> threads;
  for (size_t rank = 0; rank < communicators.size(); ++rank) {
    threads.emplace_back([&, rank] {
      try {
        body(*transport_group(communicators[rank], "thread"), *communicators[rank]);
      } catch (...) {
        errors[rank] = std::current_exception();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  expect_none(errors);
  return communicators.front();
}

}  // namespace lockstep::dist

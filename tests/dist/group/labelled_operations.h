#pragma once

#include <functional>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "dist/group/communicator.h"
#include "dist/group/transport_group.h"
#include "tests/dist/group/on_ranks.h"

namespace lockstep::dist {

/// Runs `body` on two ranks and returns the operations that rank 0's flight recorder has with a
/// label, each once: "all_reduce of bucket 1".
inline std::set<std::string> labelled_operations(const std::function<void(ProcessGroup&)>& body) {
  std::vector<std::shared_ptr<Communicator>> communicators = thread_communicators(2);
  const std::shared_ptr<Communicator> first = communicators.front();
  std::vector<std::exception_ptr> errors(2);
  std::vector<std::thread> threads;
  for (size_t rank = 0; rank < 2; ++rank) {
    threads.emplace_back([&, rank] {
      try {
        const auto group = transport_group(std::move(communicators[rank]), "thread");
        body(*group);
      } catch (...) {
        errors[rank] = std::current_exception();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  expect_none(errors);
  std::set<std::string> found;
  for (const FlightRecord& record : first->recorder().records()) {
    if (record.label[0] == '\0') continue;
    found.insert(std::string(name(record.signature.kind)) + " of " + record.label);
  }
  return found;
}

}  // namespace lockstep::dist

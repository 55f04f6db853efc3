#include "dist/group/thread_group.h"

#include <iterator>
#include <thread>
#include <utility>

#include "core/base/check.h"
#include "dist/group/thread_control.h"
#include "dist/group/transport_group.h"
#include "dist/rendezvous/secret.h"
#include "dist/transport/thread_transport.h"

namespace lockstep::dist {

std::vector<std::shared_ptr<Communicator>> thread_communicators(
    int size, const Communicator::Options& options, const std::vector<int>& hosts) {
  LS_CHECK(size >= 1, DistError, "[thread_group] expected at least 1 rank, got {}.", size);
  LS_CHECK(hosts.empty() || std::ssize(hosts) == size, DistError,
           "[thread_group] hosts: expected one for each of {} ranks, got {}.", size, hosts.size());
  ThreadJob job(size);
  std::vector<std::unique_ptr<Transport>> transports = thread_transports(size);
  std::vector<std::shared_ptr<Communicator>> communicators;
  const std::string start = random_secret();
  for (int rank = 0; rank < size; ++rank) {
    // std::function requires a copyable callable, and Connections cannot be copied.
    const auto connections =
        std::make_shared<Connections>(Connections{std::move(transports[static_cast<size_t>(rank)]),
                                                  job.control(rank),
                                                  nullptr,
                                                  start,
                                                  {},
                                                  hosts});
    communicators.push_back(
        std::make_shared<Communicator>([connections] { return std::move(*connections); }, options));
  }
  return communicators;
}

std::vector<std::unique_ptr<ProcessGroup>> thread_group(int size,
                                                        const Communicator::Options& options,
                                                        const std::vector<int>& hosts) {
  std::vector<std::unique_ptr<ProcessGroup>> groups;
  for (auto& communicator : thread_communicators(size, options, hosts)) {
    groups.push_back(transport_group(std::move(communicator), "thread"));
  }
  return groups;
}

std::vector<std::exception_ptr> run_thread_ranks(int size,
                                                 const std::function<void(ProcessGroup&)>& body,
                                                 const Communicator::Options& options,
                                                 const std::vector<int>& hosts) {
  auto groups = thread_group(size, options, hosts);
  std::vector<std::exception_ptr> errors(groups.size());
  std::vector<std::thread> threads;
  for (size_t rank = 0; rank < groups.size(); ++rank) {
    threads.emplace_back([&, rank] {
      try {
        const std::unique_ptr<ProcessGroup> group = std::move(groups[rank]);
        try {
          body(*group);
        } catch (const std::exception& error) {
          group->abort(error.what());  // in its own words, which the group's destructor lacks
          throw;
        }
      } catch (...) {
        errors[rank] = std::current_exception();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  return errors;
}

}  // namespace lockstep::dist

#include "tests/dist/nccl/fake_nccl_job.h"

#include <gtest/gtest.h>

#include <thread>
#include <utility>

#include "core/tensor/stream.h"
#include "tests/dist/group/on_ranks.h"

namespace lockstep::dist {

std::vector<std::exception_ptr> run_nccl_ranks(const FakeNccl& fake, const FakeNcclJob& job,
                                               const std::function<void(NcclGroup&)>& body) {
  std::vector<std::shared_ptr<Communicator>> communicators =
      thread_communicators(job.size, job.communicator);
  const std::shared_ptr<const NcclLibrary> library = fake.library();
  std::vector<std::exception_ptr> errors(communicators.size());
  std::vector<std::thread> threads;
  for (int rank = 0; rank < job.size; ++rank) {
    threads.emplace_back([&, rank] {
      const auto index = static_cast<size_t>(rank);
      try {
        const OwnedStream stream(kHostDevice);
        const StreamGuard guard(stream.get());
        std::shared_ptr<Communicator> communicator = std::move(communicators[index]);
        if (job.before) job.before(rank);
        const std::string identity =
            job.identity ? job.identity(rank) : "fake GPU " + std::to_string(rank);
        const std::unique_ptr<NcclGroup> group =
            nccl_group(std::move(communicator), library,
                       std::make_shared<NcclDevice>(kHostDevice, identity), job.options);
        body(*group);
      } catch (...) {
        errors[index] = std::current_exception();
      }
      if (job.after) job.after(rank);
    });
  }
  for (std::thread& thread : threads) thread.join();
  return errors;
}

void all_nccl_ranks(const FakeNccl& fake, const FakeNcclJob& job,
                    const std::function<void(NcclGroup&)>& body) {
  expect_none(run_nccl_ranks(fake, job, body));
}

}  // namespace lockstep::dist

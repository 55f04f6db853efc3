// Runs the requirements on groups (tests/dist/group/group_conformance.h) on ranks started by
// mpirun:
// mpirun -np 2 mpi_conformance [GoogleTest's options]

#include <gtest/gtest.h>

#include <cstdio>
#include <exception>
#include <memory>

#include "dist/group/mpi_group.h"
#include "tests/dist/group/group_conformance.h"

namespace lockstep::dist {
namespace {

class MpiGroupCase : public testing::Test {
 public:
  MpiGroupCase(ProcessGroup& group, const GroupCase& which) : group_(group), case_(which) {}
  void TestBody() override { case_.run(group_); }

 private:
  ProcessGroup& group_;
  const GroupCase& case_;
};

/// Prints failures only. Rank 0 prints progress; the other ranks use this listener.
class FailuresOnly : public testing::EmptyTestEventListener {
 public:
  explicit FailuresOnly(int rank) : rank_(rank) {}
  void OnTestPartResult(const testing::TestPartResult& result) override {
    if (!result.failed()) return;
    std::fprintf(stderr, "rank %d: %s:%d: %s\n", rank_, result.file_name(), result.line_number(),
                 result.message());
  }

 private:
  int rank_;
};

int run(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  const std::unique_ptr<ProcessGroup> group = mpi_group();
  for (const GroupCase& each : group_cases()) {
    testing::RegisterTest("MpiGroup", each.name, nullptr, nullptr, __FILE__, __LINE__,
                          [&group, &each] { return new MpiGroupCase(*group, each); });
  }
  if (group->rank() != 0) {
    testing::TestEventListeners& listeners = testing::UnitTest::GetInstance()->listeners();
    delete listeners.Release(listeners.default_result_printer());
    listeners.Append(new FailuresOnly(group->rank()));
  }
  return RUN_ALL_TESTS();
}

}  // namespace
}  // namespace lockstep::dist

int main(int argc, char** argv) {
  try {
    return lockstep::dist::run(argc, argv);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "mpi_conformance: %s\n", error.what());
    return 5;
  }
}

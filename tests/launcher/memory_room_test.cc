#include "launcher/memory_room.h"

#include <gmock/gmock.h>

#include <cerrno>
#include <filesystem>
#include <initializer_list>
#include <memory>
#include <new>
#include <nlohmann/json.hpp>
#include <string_view>
#include <system_error>

#include "configs/program_variables.h"
#include "core/base/error.h"
#include "core/base/service_thread.h"
#include "launcher/exit_code.h"
#include "tests/launcher/program.h"
#include "train/run/plan.h"

namespace lockstep::launcher {
namespace {

using testing::HasSubstr;

class MemoryRoomTest : public Program {
 protected:
  MemoryRoomTest() {
    put("proc/meminfo", "MemTotal: 9000 kB\nMemAvailable: 4000 kB\nSwapFree: 1000 kB\n");
    put("proc/self/status", "VmSize:\t 100 kB\n");
    put("proc/self/cgroup", "0::/job\n");
  }
  void put(const std::string& file, const std::string& text) const {
    std::filesystem::create_directories((folder_ / file).parent_path());
    put_file(folder_ / file, text);
  }
  /// A run that reads text and compares it with compressors at its end.
  void put_text_run() const {
    put_config("run.txtpb");
    put_file(folder_ / "text.txtpb", "data { text { path: 'text' held_out_bytes: 100 } }\n");
    put_file(folder_ / "text", std::string(400, 'a'));
  }
  /// Trains it under `ulimit` with the options.
  Result train_with(const std::string& limit, const char* device) const {
    const Result result =
        shell(fmt::format("ulimit {} && '{}/lockstep' train run.txtpb text.txtpb --run-dir out "
                          "--set device={} --set threads=4",
                          limit, LOCKSTEP_BIN_DIR, device));
    std::filesystem::remove_all(folder_ / "out");
    return result;
  }
  MemoryRoom room(int processes = 1) const { return memory_room(kCPU, processes, folder_.path()); }
};

TEST_F(MemoryRoomTest, IsTheMachinesFreeMemoryWithoutOtherBounds) {
  EXPECT_EQ(room().bytes, 5000u << 10);
  EXPECT_EQ(room().source, "free memory of the machine");
  EXPECT_EQ(room(4).bytes, 1250u << 10);
}

TEST_F(MemoryRoomTest, IsWhatControlGroupsLeave) {
  put("sys/fs/cgroup/job/memory.max", "3072000\n");
  put("sys/fs/cgroup/job/memory.current", "2048000\n");
  put("sys/fs/cgroup/job/memory.stat", "anon 5\nactive_file 1000\ninactive_file 7000\n");
  EXPECT_EQ(room().bytes, 3072000u - 2048000u + 8000u);
  EXPECT_THAT(room().source, HasSubstr("sys/fs/cgroup/job/memory.max"));
  EXPECT_EQ(room(2).bytes, (3072000u - 2048000u + 8000u) / 2);
  put("sys/fs/cgroup/memory.max", "4096\n");
  put("sys/fs/cgroup/memory.current", "8192\n");
  EXPECT_EQ(room().bytes, 0u);
}

TEST_F(MemoryRoomTest, IsWhatVersionOneGroupsLeave) {
  put("proc/self/cgroup", "3:cpu,memory:/job\n");
  put("sys/fs/cgroup/memory/job/memory.limit_in_bytes", "2000000\n");
  put("sys/fs/cgroup/memory/job/memory.usage_in_bytes", "500000\n");
  put("sys/fs/cgroup/memory/job/memory.stat", "inactive_file 1\ntotal_inactive_file 100000\n");
  EXPECT_EQ(room().bytes, 1600000u);
}

TEST_F(MemoryRoomTest, RefusesAPlanThatNeedsMore) {
  train::RunPlan plan;
  plan.peak_bytes = 1000;
  EXPECT_NO_THROW(require_room(plan, {1000, "a test"}));
  try {
    require_room(plan, {999, "a test"});
    FAIL();
  } catch (const OutOfMemoryError& error) {
    EXPECT_THAT(error.what(), HasSubstr("(1000 bytes)"));
    EXPECT_THAT(error.what(), HasSubstr("(999 bytes) are allowed by a test"));
  }
}

constexpr const char* kHuge =
    "model { gpt2 { context_length: 8 layers: 1 heads: 2 width: 1048576 vocab_size: 2 } }\n"
    "data { random {} }\ntrain { steps: 6 batch_size: 2 }\n";

TEST_F(MemoryRoomTest, OfTheMachineIsComparedBeforeTraining) {
  put_file(folder_ / "run.txtpb", kHuge);
  for (const char* device : {"cpu", "host:0"}) {
    const std::string arguments = fmt::format("run.txtpb --set device={}", device);
    const Result refused = run("train --run-dir out " + arguments);
    EXPECT_EQ(refused.status, 6) << refused.errors;
    EXPECT_FALSE(std::filesystem::exists(folder_ / "out"));
    const auto plan = nlohmann::json::parse(run("plan --json " + arguments).output);
    EXPECT_EQ(plan["fits"], false);
    EXPECT_THAT(refused.errors,
                HasSubstr(fmt::format("({} bytes)", plan["peak_bytes"].get<int64_t>())));
    EXPECT_THAT(refused.errors, HasSubstr("--try-anyway"));
    const Result text = run("plan " + arguments);
    EXPECT_EQ(text.status, 0);
    EXPECT_THAT(text.output, HasSubstr("does not fit here"));
    // The allocator refuses it then.
    const Result tried = run("train --try-anyway --run-dir out " + arguments);
    EXPECT_EQ(tried.status, 6) << tried.errors;
    EXPECT_THAT(tried.errors, testing::Not(HasSubstr("does not fit:")));
    std::filesystem::remove_all(folder_ / "out");
  }
}

TEST_F(MemoryRoomTest, OfAHostDeviceIsItsBudget) {
  put_config("run.txtpb");
  const Result result =
      run("train run.txtpb --set model.gpt2.width=512 --set device=host:0 --run-dir out",
          "LOCKSTEP_HOST=memory_mb:2");
  EXPECT_EQ(result.status, 6) << result.errors;
  EXPECT_THAT(result.errors, HasSubstr("allowed by the budget of host:0"));
}

TEST_F(MemoryRoomTest, OfTheAddressSpaceIsEnoughOrRefused) {
#ifndef LOCKSTEP_FILE_FAULTS
  GTEST_SKIP() << "sanitizers need more address space than any limit here";
#endif
  put_text_run();
  for (const char* device : {"cpu", "host:0"}) {
    EXPECT_EQ(train_with("-v 2000000", device).status, 0) << device;
    // In finer steps where some runs fit: oneDNN ends a process to which it gets no memory.
    for (const int kibibytes : {120'000, 200'000, 280'000, 300'000, 320'000, 330'000, 340'000,
                                350'000, 360'000, 380'000, 420'000, 500'000}) {
      const Result result = train_with(fmt::format("-v {}", kibibytes), device);
      if (result.status == 0) continue;
      EXPECT_EQ(result.status, 6) << device << " " << kibibytes << result.errors;
      EXPECT_THAT(result.errors, HasSubstr("ulimit -v")) << device << " " << kibibytes;
    }
  }
}

TEST_F(MemoryRoomTest, OfDataIsEnoughOrRefused) {
#ifndef LOCKSTEP_FILE_FAULTS
  GTEST_SKIP() << "sanitizers need more memory than any limit here";
#endif
  put_text_run();
  EXPECT_EQ(train_with("-d 1000000", "cpu").status, 0);
  for (const int kibibytes : {30'000, 50'000, 70'000, 90'000, 120'000}) {
    const Result result = train_with(fmt::format("-d {}", kibibytes), "cpu");
    if (result.status == 0) continue;
    EXPECT_EQ(result.status, 6) << kibibytes << result.errors;
    EXPECT_THAT(result.errors, HasSubstr("ulimit -d")) << kibibytes;
  }
}

TEST(ExitCode, OfARefusedThreadProcessOrAllocationIsSix) {
  EXPECT_EQ(exit_code(std::system_error(EAGAIN, std::generic_category())), kOutOfMemory);
  EXPECT_EQ(exit_code(std::system_error(ENOMEM, std::generic_category())), kOutOfMemory);
  EXPECT_EQ(exit_code(std::bad_alloc()), kOutOfMemory);
  EXPECT_EQ(exit_code(std::system_error(ENOENT, std::generic_category())), kFailure);
  try {
    refuse_thread("of a test", EAGAIN);
  } catch (const OutOfMemoryError& error) {
    EXPECT_EQ(exit_code(error), kOutOfMemory);
    for (const char* part :
         {"thread of a test", "temporarily unavailable", "ulimit -u", "pids.max", "ulimit -v"}) {
      EXPECT_THAT(error.what(), HasSubstr(part));
    }
  }
}

TEST(ExitCode, OfAFileThatTheSystemRefusesIsThree) {
  const std::filesystem::filesystem_error refused("cannot open", "there",
                                                  std::make_error_code(std::errc::io_error));
  EXPECT_EQ(exit_code(refused), kData);
  EXPECT_STREQ(error_kind(refused), "DataError");
}

TEST(ExitCode, OfAnErrorThatWasToldByNameIsThatOfTheError) {
  for (const Error* error : std::initializer_list<const Error*>{
           new ConfigError("x"), new DataError("x"), new CheckpointError("x"), new DistError("x"),
           new BackendError("x"), new TimeoutError("x"), new PeerLostError("x"),
           new MismatchError("x"), new OutOfMemoryError("x"), new NonFiniteError("x"),
           new ShapeError("x")}) {
    const std::unique_ptr<const Error> owned(error);
    EXPECT_EQ(exit_code_of(error->kind()), exit_code(*error)) << error->kind();
  }
}

class SettingsTest : public Program {};

TEST_F(SettingsTest, ThatAreNotUnderstoodEndTheProgramAndDoctorReportsThem) {
  put_config("run.txtpb");
  const std::string value = "not,understood";
  for (const config::ProgramVariable& variable : config::program_variables()) {
    const std::string setting = fmt::format("{}={}", variable.name, value);
    const bool is_host = std::string_view(variable.name) == "LOCKSTEP_HOST";
    if (variable.problem == nullptr && !is_host) continue;  // any text is understood
    const Result result = run("ops add.Tensor", setting);
    EXPECT_EQ(result.status, 2) << setting << "\n" << result.errors;
    EXPECT_THAT(result.errors, HasSubstr(variable.name));
    EXPECT_THAT(result.errors, HasSubstr("expected "));
    const Result doctor = run("doctor", setting);
    EXPECT_EQ(doctor.status, 1) << setting << "\n" << doctor.errors;
    EXPECT_THAT(doctor.output, HasSubstr("training would fail: variables: "));
    EXPECT_EQ(run("--help", setting).status, 0) << setting;
  }
}

TEST_F(SettingsTest, ThatAreNotUnderstoodEndEveryVerb) {
  put_config("run.txtpb");
  for (const char* arguments : {"train run.txtpb --run-dir out", "ops add.Tensor", "plan run.txtpb",
                                "compare out out", "launch --dry-run run.txtpb"}) {
    const Result result = run(arguments, "LOCKSTEP_CPU_CAPABILITY=avx5");
    EXPECT_EQ(result.status, 2) << arguments;
    EXPECT_THAT(result.errors, HasSubstr("LOCKSTEP_CPU_CAPABILITY"));
    EXPECT_THAT(result.errors, HasSubstr("expected avx2 or avx512"));
  }
}

}  // namespace
}  // namespace lockstep::launcher

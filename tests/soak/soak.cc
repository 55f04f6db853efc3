// Trains a small run in BITWISE on several ranks under `lockstep launch --max-restarts`, with
// random faults every few seconds, and compares the weights with those of an undisturbed run of as
// many steps.
//
//   soak [--minutes N] [--seed S] [--every SECONDS] [--ranks R] [--transport tcp|mpi] [--elastic]
//
// With --elastic ranks that are left go on by themselves, and those that are lost join them again;
// once too few are left the job is started again. Ends with 0 if the job was never lost and never
// hung, nothing is left behind, and the weights are equal bit for bit. The last line has the counts
// and the run's goodput.

#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <ios>
#include <map>
#include <nlohmann/json.hpp>
#include <random>
#include <sstream>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "launcher/launch/child_process.h"
#include "tests/core/base/temporary_directory.h"

namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;
using lockstep::launcher::ChildProcess;
using lockstep::launcher::descendants;
using lockstep::train::file_content;
using lockstep::train::put_file;

/// Without a step for so long, the job hangs.
constexpr auto kHung = 60s;
constexpr const char* kVariable = "OMPI_COMM_WORLD_RANK";

struct Options {
  double minutes = 1;
  uint64_t seed = 1;
  double every = 20;  ///< seconds between two faults, on average
  int ranks = 4;
  std::string transport = "tcp";
  bool elastic = false;
};

Options parse(int argc, char** argv) {
  Options options;
  for (int i = 1; i < argc; ++i) {
    const std::string name = argv[i];
    if (name == "--elastic") options.elastic = true;
    if (name == "--elastic" || i + 1 == argc) continue;
    const std::string value = argv[++i];
    if (name == "--minutes") options.minutes = std::stod(value);
    if (name == "--seed") options.seed = std::stoull(value);
    if (name == "--every") options.every = std::stod(value);
    if (name == "--ranks") options.ranks = std::stoi(value);
    if (name == "--transport") options.transport = value;
  }
  return options;
}

/// A file below /proc; what was read of it if the process ends meanwhile.
std::string process_text(pid_t process, const char* name) {
  try {
    return file_content(fmt::format("/proc/{}/{}", process, name));
  } catch (const std::ios_base::failure&) {
    return "";
  }
}

class Soak {
 public:
  explicit Soak(const Options& options) : options_(options), random_(options.seed) {
    std::string text;
    while (text.size() < 20000) text += static_cast<char>('a' + random_() % 26);
    put_file(folder_ / "text", text);
    put_file(folder_ / "run.txtpb",
             "model { gpt2 { context_length: 32 layers: 2 heads: 2 width: 32 } }\n"
             "data { text { path: 'text' held_out_bytes: 2000 } }\n"
             "train { steps: 100000000 batch_size: 8 micro_batch_size: 1 eval_every: 50 log_every: "
             "1000 }\n"
             "schedule { decay_steps: 100000 }\n"
             "reproducibility: BITWISE checkpoint { every_steps: 20 }\n");
  }

  void run() {
    ChildProcess launch(
        shell(fmt::format("launch {} --transport {} --oversubscribe -np {} --max-restarts 1000 "
                          "--restart-delay 0.05 {} run.txtpb --run-dir disturbed",
                          ::geteuid() == 0 ? "--allow-run-as-root" : "", options_.transport,
                          options_.ranks, options_.elastic ? "--elastic" : "")),
        {}, folder_.path().string());
    disturb(launch);
    wait_for([&] { return trains_again(); }, launch, "step after the last fault");
    launch.signal(SIGTERM);
    const auto ended = [&] { return has_ended(launch); };
    if (!comes_true(ended)) fail("the job did not stop when asked to");
    if (const int status = launch.wait(); !WIFEXITED(status) || WEXITSTATUS(status) != 75) {
      fail(fmt::format("the job ended with wait status {}, not with exit status 75", status));
    }
    if (!comes_true([&] { return processes_here() == 0; })) fail("processes are left");
    compare();
  }

 private:
  using Ranks = std::vector<pid_t>;

  std::vector<std::string> shell(const std::string& arguments) const {
    return {"/bin/sh", "-c",
            fmt::format("exec '{}/lockstep' {} >> log 2>&1", LOCKSTEP_BIN_DIR, arguments)};
  }

  [[noreturn]] void fail(const std::string& what) const {
    std::istringstream log(file_content(folder_ / "log"));
    std::vector<std::string> lines;
    for (std::string line; std::getline(log, line);) lines.push_back(line);
    std::string text;
    for (size_t i = lines.size() - std::min<size_t>(lines.size(), 40); i < lines.size(); ++i) {
      text += "  " + lines[i] + "\n";
    }
    throw std::runtime_error(
        fmt::format("{} (seed {}). Its last lines:\n{}", what, options_.seed, text));
  }

  template <class Condition>
  static bool comes_true(Condition condition) {
    for (const auto until = Clock::now() + kHung; !condition();) {
      if (Clock::now() > until) return false;
      std::this_thread::sleep_for(10ms);
    }
    return true;
  }
  static bool has_ended(const ChildProcess& launch) {
    return process_text(launch.pid(), "stat").find(") Z ") != std::string::npos;
  }
  template <class Condition>
  void wait_for(Condition condition, const ChildProcess& launch, const std::string& what) {
    const bool came = comes_true([&] {
      if (has_ended(launch)) fail("the job ended");
      return condition();
    });
    if (!came) fail("the job hangs: no " + what);
  }

  /// Changes whenever a step is done or the job is started again.
  int64_t restarts_and_steps() const {
    std::error_code ignored;
    const auto size = [&](const char* name) {
      const auto bytes = std::filesystem::file_size(folder_ / name, ignored);
      return ignored ? 0 : static_cast<int64_t>(bytes);
    };
    return size("disturbed/metrics.jsonl") + size("disturbed/restarts.jsonl");
  }

  std::vector<std::string> failures() const {
    std::istringstream text(file_content(folder_ / "disturbed/restarts.jsonl"));
    std::vector<std::string> lines;
    for (std::string line; std::getline(text, line);) lines.push_back(line);
    return lines;
  }
  /// Whether the restart after the last fault has done a step.
  bool trains_again() const {
    const std::vector<std::string> lines = failures();
    return lines.size() > failures_before_ &&
           lines.back().find("\"training_again_s\":null") == std::string::npos;
  }

  /// The processes of the ranks that there are now.
  static Ranks ranks_of(const ChildProcess& launch) {
    std::map<std::string, pid_t> found;
    for (const pid_t pid : descendants(launch.pid())) {
      std::istringstream variables(process_text(pid, "environ"));
      for (std::string each; std::getline(variables, each, '\0');) {
        if (each.starts_with(std::string(kVariable) + "=")) found.emplace(each, pid);
      }
    }
    Ranks ranks;
    for (const auto& [name, pid] : found) ranks.push_back(pid);
    return ranks;
  }

  double uniform(double low, double high) {
    return low + (high - low) * static_cast<double>(random_() % 1000000) / 1e6;
  }
  static void sleep(double seconds) {
    std::this_thread::sleep_for(std::chrono::duration<double>(seconds));
  }

  void disturb(const ChildProcess& launch) {
    const auto end = Clock::now() + std::chrono::duration<double>(60 * options_.minutes);
    int64_t seen = 0;
    while (Clock::now() < end) {
      wait_for([&] { return restarts_and_steps() != seen; }, launch, "step");
      seen = restarts_and_steps();
      sleep(uniform(0, 2 * options_.every));
      wait_for([&] { return !ranks_of(launch).empty(); }, launch, "ranks");
      Ranks ranks = ranks_of(launch);
      std::shuffle(ranks.begin(), ranks.end(), random_);
      inject(ranks, launch);
    }
  }

  void inject(const Ranks& ranks, const ChildProcess& launch) {
    const auto kill = [&](pid_t pid, int signal) {
      failures_before_ = failures().size();
      (void)::kill(pid, signal);
    };
    switch (random_() % 5) {
      case 0:
        ++faults_["killed"];
        kill(ranks[0], SIGKILL);
        break;
      case 1:
        ++faults_["crashed"];
        kill(ranks[0], SIGSEGV);
        break;
      case 2:
        ++faults_["stopped and killed"];
        kill(ranks[0], SIGSTOP);
        sleep(uniform(0, 2));
        kill(ranks[0], SIGKILL);
        break;
      case 3:
        ++faults_["two killed"];
        kill(ranks[0], SIGKILL);
        kill(ranks.back(), SIGKILL);
        break;
      default: {
        ++faults_["killed again in the recovery"];
        kill(ranks[0], SIGKILL);
        sleep(uniform(0, 1));
        const Ranks next = ranks_of(launch);
        if (!next.empty()) kill(next[random_() % next.size()], SIGKILL);
      }
    }
  }

  int processes_here() const {
    int found = 0;
    std::error_code ignored;
    for (const auto& entry : std::filesystem::directory_iterator("/proc", ignored)) {
      const auto folder = std::filesystem::read_symlink(entry.path() / "cwd", ignored);
      if (!ignored && folder == folder_.path()) ++found;
    }
    return found;
  }

  void train(const std::string& directory, int64_t steps) const {
    ChildProcess process(
        shell(fmt::format("train run.txtpb --run-dir {} --steps {}", directory, steps)), {},
        folder_.path().string());
    if (process.wait() != 0) fail("training of " + directory + " failed");
  }

  void compare() const {
    const auto account = nlohmann::json::parse(file_content(folder_ / "disturbed/goodput.json"));
    const int64_t steps = account.at("steps");
    train("disturbed", steps);  // writes the weights: all its steps are done
    train("undisturbed", steps);
    const std::string weights = file_content(folder_ / "disturbed/model.safetensors");
    const bool equal =
        !weights.empty() && weights == file_content(folder_ / "undisturbed/model.safetensors");
    std::string faults;
    for (const auto& [name, count] : faults_) faults += fmt::format(", {} {}", name, count);
    fmt::print("soak: {} steps on {} ranks, seed {}{}; {} restarts, goodput {:.1f} %; weights {}\n",
               steps, options_.ranks, options_.seed, faults, account.at("restarts").get<int>(),
               100 * account.at("goodput").get<double>(),
               equal ? "equal those of an undisturbed run" : "DIFFER from an undisturbed run's");
    if (!equal) fail("the weights differ");
  }

  Options options_;
  std::mt19937_64 random_;
  lockstep::train::TemporaryDirectory folder_;
  std::map<std::string, int> faults_;
  size_t failures_before_ = 0;  ///< failures that were known before the last fault
};

}  // namespace

int main(int argc, char** argv) {
  try {
    Soak(parse(argc, argv)).run();
    return 0;
  } catch (const std::exception& error) {
    fmt::print(stderr, "soak: {}\n", error.what());
    return 1;
  }
}

#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <iterator>
#include <memory>
#include <nlohmann/json.hpp>

#include "configs/load.h"
#include "configs/run.pb.h"
#include "configs/variables.h"
#include "core/base/parallel.h"
#include "core/cuda/availability.h"
#include "core/dispatch/dispatcher.h"
#include "launcher/command_line.h"
#include "launcher/cuda_libraries.h"
#include "launcher/doctor/gpu_parts.h"
#include "launcher/exit_code.h"
#include "launcher/standard_streams.h"
#include "launcher/variables.h"
#include "launcher/verbs.h"
#include "train/report/health.h"

namespace lockstep::launcher {

namespace {

using train::Check;
using train::Health;

int64_t kernels_of(Key key) {
  const std::vector<const Operator*> operators = dispatcher().operators();
  return std::ranges::count_if(operators,
                               [&](const Operator* op) { return op->kernel(key) != nullptr; });
}

Check backends() {
  std::vector<std::string> found;
  for (const Key key : {Key::kCPU, Key::kHost, Key::kCUDA}) {
    const int64_t kernels = kernels_of(key);
    found.push_back(fmt::format("{} {}", name(key),
                                kernels > 0 ? fmt::format("{} kernels", kernels) : "no kernels"));
  }
  const bool works = kernels_of(Key::kCPU) > 0;
  return {"backends", works ? Health::kOk : Health::kFail,
          fmt::format("{}", fmt::join(found, ", ")),
          works ? "" : "No kernel is linked in: build the whole library."};
}

Check libraries() {
  std::vector<std::string> found;
  for (const auto& [library, version] : train::loaded_libraries()) {
    found.push_back(library + " " + version);
  }
  return {"libraries", Health::kOk, fmt::format("{}", fmt::join(found, ", ")), ""};
}

Check mpi() {
  const bool loaded = train::loaded_libraries().contains("mpi");
  return {"MPI", Health::kOk, loaded ? "linked" : "not built in", ""};
}

/// Reports CUDA devices. A missing GPU is no failure, since other devices can train.
Check cuda_devices() {
  const cuda::Availability cuda = cuda::availability();
  Check check{"CUDA", Health::kOk, "", ""};
  if (!cuda.compiled) {
    check.found = "not built in";
  } else if (!cuda.reason.empty()) {
    check.found = "built in, but no device can be used: " + cuda.reason;
  } else {
    check.found =
        fmt::format("{} (driver for CUDA {})", fmt::join(cuda.devices, "; "), cuda.driver);
  }
  return check;
}

/// Reports CUDA libraries, if there is a GPU. They are optional: without them matrix products,
/// convolutions and communication are slower.
Check cuda_libraries() {
  Check check{"CUDA libraries", Health::kOk, "", ""};
  std::string missing;
  for (const CudaLibrary& library : find_cuda_libraries()) {
    if (library.version.empty()) {
      missing += (missing.empty() ? "" : ", ") + library.name;
    } else {
      check.found += fmt::format("{}{} {} ({})", check.found.empty() ? "" : ", ", library.name,
                                 library.version, library.file);
    }
  }
  if (missing.empty()) return check;
  check.found += fmt::format("{}no {}", check.found.empty() ? "" : "; ", missing);
  check.health = Health::kWarn;
  check.advice =
      "Without cuBLASLt products are slow, without NCCL ranks talk through the memory of the cpu. "
      "Install them, or name their folders in LOCKSTEP_CUDA_LIBRARIES and LD_LIBRARY_PATH.";
  return check;
}

/// Reports environment variables that config::load would reject.
Check variables() {
  const config::Variables found = config::process_variables();
  std::vector<std::string> names;
  for (const auto& [name, value] : found) names.push_back(name + "=" + value);
  Check check{"variables", Health::kOk,
              names.empty() ? "no LOCKSTEP_ variable" : fmt::format("{}", fmt::join(names, " ")),
              ""};
  try {
    config::RunConfig config;
    config::Origins origins;
    config::apply_variables(config, origins, found);
    check_variables();
  } catch (const config::SourceError& error) {
    check.health = Health::kFail;
    check.advice = fmt::format("{}: {}", error.where(), error.problem());
  } catch (const ConfigError& error) {
    check.health = Health::kFail;
    check.advice = error.what();
  }
  return check;
}

void print_text(const std::vector<Check>& checks) {
  size_t width = 0;
  for (const Check& check : checks) width = std::max(width, check.subject.size());
  for (const Check& check : checks) {
    fmt::print("{:<4}  {:<{}}  {}\n", name(check.health), check.subject, width, check.found);
    if (!check.advice.empty()) fmt::print("      {:<{}}  {}\n", "", width, check.advice);
  }
}

void print_json(const std::vector<Check>& checks, bool ok) {
  nlohmann::ordered_json json;
  json["ok"] = ok;
  json["checks"] = nlohmann::ordered_json::array();
  for (const Check& check : checks) {
    json["checks"].push_back({{"subject", check.subject},
                              {"health", name(check.health)},
                              {"found", check.found},
                              {"advice", check.advice}});
  }
  fmt::print("{}\n", json.dump(2, ' ', false, nlohmann::json::error_handler_t::replace));
}

struct DoctorOptions {
  std::string run_folder = "runs";
  bool gpu = false;
  double time_limit = 60;  ///< seconds, for the GPUs
  bool json = false;
};

/// Examines the GPUs, of which there should be one.
Examined examine_gpus(const DoctorOptions& options) {
  const cuda::Availability cuda = cuda::availability();
  if (!cuda.compiled || !cuda.reason.empty()) {
    return {.checks = {{"GPU", Health::kFail, "there is none to examine",
                        cuda.compiled ? cuda.reason + "." : "This build has no CUDA."}}};
  }
  return examine(gpu_parts(), std::chrono::ceil<std::chrono::milliseconds>(
                                  std::chrono::duration<double>(options.time_limit)));
}

void run_doctor(const DoctorOptions& options) {
  std::vector<Check> checks = {{"lockstep", Health::kOk, LOCKSTEP_VERSION, ""},
                               backends(),
                               cuda_devices(),
                               mpi(),
                               libraries(),
                               variables()};
  if (const cuda::Availability cuda = cuda::availability(); cuda.compiled && cuda.reason.empty()) {
    checks.insert(checks.begin() + 3, cuda_libraries());
  }
  for (Check& check :
       train::examine_machine({.run_folder = options.run_folder, .threads = num_threads()})) {
    checks.push_back(std::move(check));
  }
  Examined gpus;
  if (options.gpu) gpus = examine_gpus(options);
  std::ranges::move(gpus.checks, std::back_inserter(checks));
  const auto fails = [](const Check& check) { return check.health == Health::kFail; };
  const bool ok = std::ranges::none_of(checks, fails);
  if (options.json) {
    print_json(checks, ok);
  } else {
    print_text(checks);
    for (const Check& check : checks) {
      if (fails(check)) fmt::print("training would fail: {}: {}\n", check.subject, check.advice);
    }
  }
  if (gpus.hangs) {
    // Destructors would wait for the thread that hangs.
    require_output_written();
    std::_Exit(kFailure);
  }
  if (!ok) throw ExitStatus(kFailure);
}

}  // namespace

void add_doctor(const Verb& app) {
  auto options = std::make_shared<DoctorOptions>();
  const Verb verb =
      app.verb("doctor", "Would training work here? Exit status 1 with the reason if not");
  verb.option("--run-dir", options->run_folder, "Where runs would be written (default: runs)");
  const Option gpu = verb.flag(
      "--gpu", options->gpu,
      "Also examine the GPUs, which takes some seconds for each: clocks, memory errors, other "
      "processes, rates of memory, products and copies, links and NCCL");
  verb.option("--time-limit", options->time_limit,
              "Seconds after which what GPUs have not answered is given up (default 60)")
      .positive()
      .needs(gpu);
  verb.flag("--json", options->json, "One JSON object instead of lines of text");
  verb.runs([options] { run_doctor(*options); });
}

}  // namespace lockstep::launcher

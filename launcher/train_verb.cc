#include <fmt/core.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <memory>
#include <optional>
#include <utility>

#include "configs/annotated_text.h"
#include "configs/bit_flip.h"
#include "configs/load.h"
#include "configs/run.pb.h"
#include "configs/variables.h"
#include "core/base/check.h"
#include "core/base/duration.h"
#include "core/base/files/atomic_file.h"
#include "core/base/log_text.h"
#include "core/base/mutex.h"
#include "core/base/parallel.h"
#include "core/base/thread_pool.h"
#include "core/memory/caching_allocator.h"
#include "dist/group/failure.h"
#include "dist/rendezvous/socket.h"
#include "dist/transport/mpi_transport.h"
#include "launcher/command_line.h"
#include "launcher/config_options.h"
#include "launcher/exit_code.h"
#include "launcher/load_option.h"
#include "launcher/memory_room.h"
#include "launcher/ranks.h"
#include "launcher/run_profile.h"
#include "launcher/shell_command.h"
#include "launcher/stop_signals.h"
#include "launcher/train_report.h"
#include "launcher/verbs.h"
#include "train/build.h"
#include "train/page/run_page.h"
#include "train/report/allocation_recorder.h"
#include "train/report/environment.h"
#include "train/report/fresh_directory.h"
#include "train/run/joining.h"
#include "train/run/plan.h"
#include "train/run/replicas.h"
#include "train/run/training_run.h"

namespace lockstep::launcher {

namespace {

/// Where runs without --run-dir are.
constexpr const char* kRunsFolder = "runs";

struct TrainOptions {
  std::vector<std::string> files;
  std::vector<std::string> overrides;
  std::vector<std::string> plugins;
  int64_t steps = 0;
  bool overfit_one_batch = false;
  bool try_anyway = false;
  bool inject_faults = false;
  std::string run_directory;
  bool fresh = false;
  std::string time_limit;
  std::string log_format = "text";
  std::string allocations_file;
  bool profile = false;
  std::string profile_schedule;
  std::string rendezvous;
  int ranks = 0;
  int rank = -1;
  bool join = false;
  std::vector<std::string> command_line;
  std::chrono::steady_clock::time_point begun = std::chrono::steady_clock::now();
};

/// RankEnvironment::source of a step of Slurm.
constexpr const char* kSlurm = "Slurm's variables";

/// Whether `lockstep launch` asks to leave out no rank as too slow.
bool keeps_slow_ranks() {
  const config::Variables variables = config::process_variables();
  const auto found = variables.find("LOCKSTEP_KEEP_SLOW");
  return found != variables.end() && found->second == "1";
}

/// Returns what to do to go on with the run: the command that started it, with its directory. An
/// empty `directory` is that of the command, or a new one.
std::string how_to_go_on(const TrainOptions& options, const std::string& directory,
                         const dist::RankEnvironment& rank) {
  const config::Variables variables = config::process_variables();
  // `lockstep launch` tells the user how to start all ranks again.
  if (variables.contains("LOCKSTEP_JOB_ID")) return "";
  const std::vector<std::string>& given = options.command_line;
  std::vector<std::string> words = going_on({given.begin() + 2, given.end()}, directory);
  std::string program = shell_text({given.begin(), given.begin() + 1});
  std::string start = " To go on:";
  if (rank.size == 1 || !options.rendezvous.empty()) {
    program += " train";
  } else if (rank.source == kSlurm) {
    program = fmt::format("srun{} -n {} --mpi={} {} train",
                          rank.node_count ? fmt::format(" -N {}", *rank.node_count) : "", rank.size,
                          rank.under_mpi ? "pmix" : "none", program);
  } else if (!rank.under_mpi) {
    start = fmt::format(" To go on, start all {} ranks again as they were started, each with:",
                        rank.size);
    program += " train";
  } else {
    program +=
        fmt::format(" launch -np {}{}{}", rank.size, ::geteuid() == 0 ? " --allow-run-as-root" : "",
                    rank.size > thread_pool::allowed_cores() ? " --oversubscribe" : "");
    // launch takes the config files first.
    std::stable_partition(words.begin(), words.end(), [&](const std::string& word) {
      return std::ranges::find(options.files, word) != options.files.end();
    });
  }
  return fmt::format("{}\n  {}{} {}", start, assignments(variables), program, shell_text(words));
}

train::RunDirectory open_directory(const TrainOptions& options, const config::RunConfig& config) {
  if (options.run_directory.empty())
    return train::RunDirectory::create_new(config.name(), kRunsFolder);
  using Existing = train::RunDirectory::Existing;
  return train::RunDirectory::create_at(options.run_directory,
                                        options.fresh ? Existing::kRefuse : Existing::kContinue);
}

/// Throws OutOfMemoryError if the run's memory, which nothing of it has taken yet, is not there.
void require_room(const config::RunConfig& config, const dist::RankEnvironment& rank) {
  const MemoryRoom room =
      memory_room(parse_device(config.device()), rank.local_size.value_or(rank.size));
  if (room.bytes != UINT64_MAX) require_room(train::plan_run(config, rank.size), room);
}

/// Tells rank 0 what a signal says until the first step, when there is nothing to save yet.
void end_before_first_step(StopSignals& signals, const TrainOptions& options,
                           const dist::RankEnvironment& rank, const std::string& directory) {
  signals.end_at_once(rank.rank != 0 ? ""
                                     : "stopped before the first step; there is nothing to save." +
                                           how_to_go_on(options, directory, rank));
}

/// Writes the page of a run that ended. The run is saved already, so an error is only told.
void write_page(const train::RunDirectory& directory, train::RunEnd end) {
  // The job's hosts wait for this, for 7 seconds at most; and a run that was told to stop may be
  // killed soon after.
  constexpr uint64_t kMostFinished = uint64_t{256} << 20, kMostStopped = uint64_t{32} << 20;
  try {
    train::write_run_page(directory.path(),
                          end == train::RunEnd::kStopped ? kMostStopped : kMostFinished);
  } catch (const std::exception& error) {
    write_log(stderr, fmt::format("the run's page was not written: {}\n", error.what()));
  }
}

/// Trains as the leader, or alone; returns the exit status. Where `elastic` has what to go on with
/// afterwards, only this part of the run has ended.
int lead_training(const TrainOptions& options, const config::RunConfig& config,
                  const config::Origins& origins, const Ranks& ranks, StopSignals& signals,
                  train::ElasticRun& elastic) {
  const bool goes_on = elastic.carried.has_value();
  const auto stop = [&] { return signals.received() != 0; };
  const std::string environment = train::environment_json({.command_line = options.command_line,
                                                           .version = LOCKSTEP_VERSION,
                                                           .threads = num_threads(),
                                                           .device = train::device_of(config),
                                                           .libraries = {},
                                                           .fault = config.inject().flip()});
  // Created before the model, so that its parameters are recorded too.
  std::optional<train::AllocationRecorder> recorder;
  if (!options.allocations_file.empty()) {
    LS_CHECK(config.memory().snapshot_step() == 0, ConfigError,
             "[train] --record-allocations and memory.snapshot_step need the allocator's one "
             "history: expected one of them, got both. Record in a run of its own.");
    recorder.emplace(caching_allocator(parse_device(config.device())));
  }
  train::FreshDirectory fresh(options.run_directory.empty() ? kRunsFolder : options.run_directory);
  const train::RunDirectory directory = goes_on
                                            ? train::RunDirectory::open(elastic.carried->directory)
                                            : open_directory(options, config);
  if (!goes_on) {
    fresh.use(directory.path());
    end_before_first_step(signals, options, ranks.environment, directory.path().string());
  }
  RunProfile profile(config, ranks, directory.profile());
  train::TrainingRun run(config, directory, environment, nullptr, ranks.group.get(), &elastic);
  fresh.keep();
  int log_error = 0;
  if (!goes_on) {
    if (!run.has_nothing_to_train()) {
      write_text(directory.path() / "config_origins.txtpb",
                 config::annotated_text(config, origins));
    }
    log_error = write_log(stderr, banner(run, config, ranks.environment.size));
  }
  const train::LogFormat format = train::parse_log_format(options.log_format);
  // Other formats are for programs, which expect nothing else on standard output.
  const bool is_text = format == train::LogFormat::kText;
  const auto waiting_for = [&](const char* what) { signals.wait_for(what); };
  waiting_for("this step");
  const train::RunSummary summary = profile.around([&] {
    return run.run({.terminal = is_text ? stderr : stdout,
                    .format = format,
                    .log_error = log_error,
                    .stop = stop,
                    .waiting_for = waiting_for,
                    .begun = options.begun,
                    .time_limit = parse_duration(options.time_limit),
                    .final_sample = is_text,
                    .before_step =
                        [&](int64_t step) {
                          if (recorder) recorder->mark_step(step);
                          profile.begin_step(step);
                        },
                    .keep_slow_ranks = keeps_slow_ranks()});
  });
  if (summary.end == train::RunEnd::kRegrouped) return kSuccess;
  if (recorder) recorder->write(options.allocations_file, config.name());
  if (!run.has_nothing_to_train()) write_page(directory, summary.end);
  if (summary.end == train::RunEnd::kStopped) {
    const int lost = write_log(
        stderr, fmt::format("stopped after step {}; everything is saved.{}\n", summary.steps,
                            how_to_go_on(options, directory.path().string(), ranks.environment)));
    if (lost != 0 && !summary.told_lost_log) train::tell_lost_log(directory, lost);
    return kStopped;
  }
  profile.measure_peaks();
  if (!is_text) return kSuccess;
  // A signal during the last step came too late to stop the run, but leaves out the rest.
  const bool in_haste = stop();
  if (!in_haste) {
    signals.end_at_once("stopped; the run is finished and saved, the rest of its report left out.");
  }
  int lost = write_log(stdout, run_report(run, summary) + profile.report());
  const std::string sample =
      in_haste ? ""
      : run.trainer().is_sharded()
          ? summary.sample.value_or("")
          : run.trainer().sample_text(config.train().sample_bytes(), config.seed());
  if (const int error = write_log(stdout, sample_report(sample, directory)); lost == 0) {
    lost = error;
  }
  if (lost != 0 && !summary.told_lost_log) train::tell_lost_log(directory, lost);
  return kSuccess;
}

/// Throws ConfigError for a run that would be wrong on purpose, unless that was asked for: its
/// config may have been copied from one that was.
void require_no_fault(const config::RunConfig& config) {
  const std::optional<config::BitFlip> flip = config::flip_of(config);
  LS_CHECK(!flip, ConfigError,
           "[inject.flip] this run would compute wrong numbers on purpose: {}. Expected no fault. "
           "Leave inject.flip out, or add --inject-faults.",
           config::to_text(*flip));
}

/// mpirun ends all ranks when one is lost.
void require_tcp_if_elastic(const config::RunConfig& config, const dist::RankEnvironment& rank) {
  LS_CHECK(!config.parallel().has_elastic() || rank.size == 1 || !uses_mpi(rank), ConfigError,
           "[train] parallel.elastic: these ranks are connected by MPI, which ends all of them "
           "when one is lost: expected TCP. Start them with --transport tcp, or without mpirun, or "
           "leave parallel.elastic out.");
}

void require_no_more(const config::Elastic& changes, const dist::RankEnvironment& rank) {
  LS_CHECK(changes.max_ranks() == 0 || rank.size <= changes.max_ranks(), ConfigError,
           "[train] parallel.elastic.max_ranks is {}: expected no more ranks at the start, got {}.",
           changes.max_ranks(), rank.size);
}

/// Lets the other ranks end as this one does where a signal ends it, and not because they lost it.
class CommonEnd {
 public:
  /// `ranks` are those of now on.
  void use(StopSignals& signals, const Ranks& ranks) {
    const bool is_first = present_ == nullptr;
    if (is_first && ranks.group == nullptr) return;
    if (is_first) present_ = std::make_shared<Present>();
    {
      const MutexLock guard(present_->lock);
      present_->communicator = ranks.communicator;
    }
    if (!is_first) return;
    signals.before_end([present = present_] {
      std::shared_ptr<dist::Communicator> communicator;
      {
        const MutexLock guard(present->lock);
        communicator = present->communicator.lock();
      }
      if (communicator) communicator->stop();
    });
  }

 private:
  struct Present {
    Mutex lock;
    std::weak_ptr<dist::Communicator> communicator LS_GUARDED_BY(lock);
  };
  std::shared_ptr<Present> present_;
};

/// Trains as one of the other ranks; returns the exit status.
int follow(const config::RunConfig& config, const Ranks& ranks, StopSignals& signals,
           train::ElasticRun& elastic) {
  RunProfile profile(config, ranks, "");
  const train::RunEnd end = profile.around([&] {
    return train::follow_training(
        config, *ranks.group, [&] { return signals.received() != 0; },
        [&] { signals.wait_for(nullptr); }, [&](int64_t step) { profile.begin_step(step); },
        &elastic);
  });
  // mpirun ends all ranks when the first ends with another status than 0: rank 0's tells it.
  const bool tells = end == train::RunEnd::kStopped && !uses_mpi(ranks.environment);
  return tells ? kStopped : kSuccess;
}

dist::GivenRank given_rank(const TrainOptions& options) {
  dist::GivenRank given;
  if (options.rank >= 0) given.rank = options.rank;
  if (options.ranks > 0) given.size = options.ranks;
  if (!options.rendezvous.empty()) {
    const dist::Endpoint endpoint = dist::parse_endpoint(options.rendezvous);
    given.master_address = endpoint.host;
    given.master_port = endpoint.port;
  }
  return given;
}

/// Waits until this process is one of the ranks of a run that trains; returns the exit status if
/// that ends before.
std::optional<int> join(const config::RunConfig& config, const dist::RankEnvironment& told,
                        train::ElasticRun& elastic) {
  LS_CHECK(config.parallel().has_elastic(), ConfigError,
           "[train] --join: expected the config of a run that others may join, with "
           "parallel.elastic.");
  if (config.threads() > 0) set_num_threads(config.threads());
  dist::Members::Start start = start_of(told, config.parallel().silence_seconds());
  start.shard_size = train::ranks_of_a_model(config);
  const auto tell = [](const std::string& line) { write_log(stderr, fmt::format("{}\n", line)); };
  const std::optional<dist::JoinEnd> end =
      train::join_run(config, start, dist::mpi_options().start_limit, tell, elastic);
  if (!end) {
    tell(fmt::format("{}{} as rank {} of {}", train::kJoined, start.door, elastic.met->rank,
                     elastic.met->present.size()));
    return std::nullopt;
  }
  LS_CHECK(*end != dist::JoinEnd::kFailed, PeerLostError,
           "[join] the run at {} has failed before this process joined it.", start.door);
  const bool is_stopped = *end == dist::JoinEnd::kStopped;
  tell(fmt::format("the run at {} has {} before this process joined it", start.door,
                   is_stopped ? "been stopped" : "finished"));
  return is_stopped ? kStopped : kSuccess;
}

/// Waits as `join` does, as a rank that the others went on without: those that are left of its
/// group keep no whole model.
std::optional<int> wait_to_join(const config::RunConfig& config, const dist::RankEnvironment& told,
                                StopSignals& signals, Ranks& ranks, train::ElasticRun& elastic) {
  // There is nothing to save here.
  signals.end_at_once("");
  // The others have left their group as well, unless they have been lost since.
  limit_end(ranks, config.parallel().elastic().wait_seconds());
  ranks = {};
  ranks.environment = told;
  write_log(stderr,
            "the others go on without this rank, of whose group ranks are lost: waiting until "
            "processes are there to complete one\n");
  return join(config, told, elastic);
}

/// Runs the verb; returns the exit status. A stop is no exception: one would make the group's
/// destructor abort the other ranks, which end as well.
int run_train(TrainOptions options) {
  StopSignals signals;
  const dist::RankEnvironment told = this_rank(given_rank(options));
  // Until the first step there is nothing to save, whatever is being waited for.
  end_before_first_step(signals, options, told, "");
  if (options.steps != 0) {
    options.overrides.push_back(fmt::format("train.steps={}", options.steps));
  }
  const std::vector<Plugin> plugins = load_plugins(options.plugins);
  if (options.profile) {
    for (std::string& part : profile_overrides(options.profile_schedule)) {
      options.overrides.push_back(std::move(part));
    }
  }
  if (options.overfit_one_batch) options.overrides.push_back("train.overfit_one_batch=true");
  config::Origins origins;
  const config::RunConfig config = load_config(options.files, options.overrides, &origins);
  if (!options.inject_faults) require_no_fault(config);
  if (!options.try_anyway) require_room(config, told);
  require_tcp_if_elastic(config, told);
  const config::Elastic& changes = config.parallel().elastic();
  train::ElasticRun elastic;
  DeviceWatch device_watch;  // beyond the end of the ranks' group, which waits for the device
  Ranks ranks;
  if (options.join) {
    if (const std::optional<int> ended = join(config, told, elastic)) return *ended;
    ranks.environment = told;
    ranks = met_again(*std::exchange(elastic.met, {}), told);
  } else {
    require_no_more(changes, told);
    elastic.most = static_cast<int>(changes.max_ranks() > 0 ? changes.max_ranks() : told.size);
    ranks = join_ranks(told, config.parallel().silence_seconds(), config.parallel().has_elastic());
  }
  CommonEnd common_end;
  common_end.use(signals, ranks);
  device_watch.use(ranks);
  int status = kSuccess;
  try {
    if (options.join) set_rank_threads(ranks, config.threads());
    tell_errors(ranks, [&] {
      if (options.join) return;
      assign_devices(ranks, config);
      set_rank_threads(ranks, config.threads());
      train::Replicas(ranks.group.get()).require_same("config", train::lines_of(config));
    });
    device_watch.start(config);
    const auto take_part = [&] {
      common_end.use(signals, ranks);
      device_watch.use(ranks);
      set_time_limit(ranks, config.parallel().timeout_seconds());
      if (config.parallel().has_elastic())
        elastic.members = members_of(ranks, train::ranks_of_a_model(config));
      status = ranks.leads() ? lead_training(options, config, origins, ranks, signals, elastic)
                             : follow(config, ranks, signals, elastic);
    };
    do {
      try {
        if (std::exchange(elastic.is_spare, false)) {
          if (const std::optional<int> ended =
                  wait_to_join(config, told, signals, ranks, elastic)) {
            return *ended;
          }
        }
        if (elastic.met) {
          // The others have left their group as well, unless they have been lost since.
          limit_end(ranks, changes.wait_seconds());
          ranks = met_again(*std::exchange(elastic.met, {}), ranks.environment);
        }
        tell_errors(ranks, take_part);
      } catch (const DistError& error) {
        if (!train::meet_again(elastic, config, error)) throw;
      }
    } while (elastic.met || elastic.is_spare);
  } catch (const dist::StoppedError&) {
    return kStopped;
  }
  return status;
}

}  // namespace

void add_train(const Verb& app, std::vector<std::string> command_line) {
  auto options = std::make_shared<TrainOptions>();
  options->command_line = std::move(command_line);
  const Verb verb = app.verb("train", "Train the model that a config describes");
  add_config_options(verb, options->files, options->overrides);
  add_load_option(verb, options->plugins);
  verb.option("--steps", options->steps, "Train this many steps (train.steps)").positive();
  verb.option("--log-format", options->log_format,
              "How steps are shown (default text); other formats go to standard output")
      .one_of({"text", "json", "nanogpt", "llmc"});
  const Option directory =
      verb.option("--run-dir", options->run_directory,
                  "Folder for everything the run writes (default: runs/NAME-DATE-TIME). One "
                  "that holds checkpoints is gone on with");
  verb.flag("--fresh", options->fresh, "Refuse a --run-dir that is not empty").needs(directory);
  verb.option("--time-limit", options->time_limit,
              "Save and stop in time (seconds, or H:MM:SS); exit status 75: start again to go "
              "on")
      .check([](const std::string& text) {
        return parse_duration(text) > 0 ? "" : "expected seconds or H:MM:SS, above 0";
      });
  verb.option("--record-allocations", options->allocations_file,
              "Write the requests for the device's memory to this file, for `lockstep bench "
              "allocator --trace`");
  const Option profile =
      verb.option("--profile", options->profile_schedule,
                  "Profile steps, by default 3 after 7 others: a table at the end, traces in the "
                  "run's profile/. wait=5,warmup=2,active=3,repeat=1 says which (profile.*)")
          .value_is_optional()
          .check([](const std::string& text) { return problem_of_schedule(text); });
  verb.flag("--overfit-one-batch", options->overfit_one_batch,
            "Train on the first batch alone (train.overfit_one_batch): a model that learns at "
            "all drives its loss towards 0");
  verb.option("--rendezvous", options->rendezvous,
              "HOST:PORT where the ranks of a job meet without a launcher: rank 0 listens "
              "there, the others connect")
      .check([](const std::string& text) -> std::string {
        try {
          return dist::parse_endpoint(text).port > 0 ? "" : "expected a port above 0";
        } catch (const DistError& error) {
          return error.what();
        }
      });
  const Option ranks =
      verb.option("--ranks", options->ranks, "Number of ranks that meet").positive();
  verb.flag("--join", options->join,
            "Join the run that trains at --rendezvous (parallel.elastic) at the end of a step, or "
            "wait there until a rank is lost");
  verb.option("--rank", options->rank,
              "Which of them this is (default: what variables say, or the next that is free)")
      .not_negative()
      .needs(ranks);
  verb.flag("--try-anyway", options->try_anyway,
            "Train even if the plan's memory (`lockstep plan`) is more than this process is "
            "allowed");
  verb.flag("--inject-faults", options->inject_faults,
            "Let the config make a fault on purpose (inject.flip), to try what finds it");
  verb.runs([options, profile] {
    options->profile = profile.given();
    if (const int status = run_train(*options); status != kSuccess) throw ExitStatus(status);
  });
}

}  // namespace lockstep::launcher

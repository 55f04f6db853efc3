#include "launcher/launch/launch_attempt.h"

#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <utility>

#include "core/base/check.h"
#include "core/base/log_text.h"
#include "dist/rendezvous/socket.h"
#include "dist/transport/mpi_transport.h"
#include "launcher/exit_code.h"
#include "launcher/launch/launch_leftovers.h"
#include "launcher/launch/restart_log.h"
#include "train/run/joining.h"

namespace lockstep::launcher {
namespace {

using Clock = LaunchAttempt::Clock;
using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr int kTimedOut = 110;  // mpirun's exit status for --timeout
/// Time for the launcher to end the job after it reported the first failure; then it gets SIGTERM.
constexpr seconds kFailureToTerm(10);
/// Time for ranks that launch itself started to notice that one is lost, and to end; then they get
/// SIGTERM.
constexpr seconds kLossToTerm(2);
/// The same while one of them writes a checkpoint: of what was trained until the loss, or of a step
/// before.
constexpr seconds kLossToTermInSave(120);
constexpr milliseconds kSaveCheck(100);
/// How often launch looks for ranks that are stopped while others have ended.
constexpr milliseconds kStoppedCheck(500);
/// Time for a process that has not joined the others to notice that the run is over.
constexpr seconds kOverToEnd(2);
/// Time for the ranks to start after a stop request; if there are none by then, the job is ended.
constexpr seconds kRequestWait(2);
/// mpirun can lock itself up in its own end, after the ranks' (PMIx_server_finalize).
constexpr seconds kRanksToEnd(10);
constexpr milliseconds kRetry(20);

OutputTags tags_of(const LaunchPlan& plan) {
  if (plan.way == LaunchPlan::Way::kDirect) return OutputTags::kNone;
  if (plan.way == LaunchPlan::Way::kSrun) return OutputTags::kSlurm;
  return plan.launcher.starts_with("Open MPI 4") ? OutputTags::kOpenMpi4 : OutputTags::kOpenMpi5;
}

/// Time from SIGTERM to SIGKILL. mpirun needs longer than a plain program: it sends its ranks
/// SIGTERM a second after its own, and SIGKILL a second later.
seconds term_to_kill(const LaunchPlan& plan) {
  return seconds(plan.way == LaunchPlan::Way::kDirect ? 1 : 4);
}

const char* name_of(const LaunchPlan& plan) {
  switch (plan.way) {
    case LaunchPlan::Way::kMpirun:
      return "mpirun";
    case LaunchPlan::Way::kSrun:
      return "srun";
    default:
      return plan.ranks == 1 ? "the program" : "the ranks";
  }
}

template <class... Arguments>
void say(fmt::format_string<Arguments...> format, Arguments&&... arguments) {
  write_log(stderr, fmt::format("lockstep launch: {}\n",
                                fmt::format(format, std::forward<Arguments>(arguments)...)));
}

/// Folders in which mpirun may have created its session folder.
std::vector<std::string> session_folders(const LaunchPlan& plan) {
  std::vector<std::string> folders = {"/tmp"};
  for (const char* name : {"TMPDIR", "TEMP", "TMP", "OMPI_MCA_orte_tmpdir_base"}) {
    if (const char* folder = std::getenv(name)) folders.emplace_back(folder);
  }
  for (const auto& [name, value] : plan.options.mca) {
    if (name == "orte_tmpdir_base") folders.push_back(value);
  }
  std::ranges::sort(folders);
  folders.erase(std::unique(folders.begin(), folders.end()), folders.end());
  return folders;
}

LaunchFailure failure_of(int rank, int wait_status) {
  LaunchFailure failure{rank, "", 0, 0, ""};
  if (WIFSIGNALED(wait_status)) {
    failure.signal = WTERMSIG(wait_status);
    failure.text = fmt::format("was ended by {}", signal_text(failure.signal));
  } else {
    failure.status = WEXITSTATUS(wait_status);
    failure.text = fmt::format("ended with exit status {}", failure.status);
  }
  return failure;
}

bool ended_well(int wait_status) {
  return WIFEXITED(wait_status) &&
         (WEXITSTATUS(wait_status) == kSuccess || WEXITSTATUS(wait_status) == kStopped);
}

/// Size of the file to which training adds a line when it begins.
uintmax_t bytes_of_starts(const LaunchPlan& plan) {
  std::error_code failed;
  const auto bytes = std::filesystem::file_size(
      std::filesystem::path(plan.run_directory) / "starts.jsonl", failed);
  return failed ? 0 : bytes;
}

/// Whether a rank ended because it had lost another one, which is then the cause.
bool is_consequence(const LaunchFailure& failure) {
  return failure.signal == 0 && failure.status == kCommunication;
}

}  // namespace

LaunchAttempt::LaunchAttempt(const LaunchPlan& plan, SignalQueue& signals,
                             std::optional<Clock::time_point> deadline, bool append_output)
    : plan_(plan),
      signals_(signals),
      output_(plan.options, append_output),
      starts_before_(bytes_of_starts(plan)),
      comebacks_(plan.options.fewest_left > 0 ? plan.options.max_restarts.value_or(0) : 0,
                 plan.options.restart_delay_seconds),
      deadline_(deadline) {
  std::vector<std::string> folders;
  if (plan.way == LaunchPlan::Way::kMpirun) {
    folders = session_folders(plan);
    remove_stale_segments(dist::host_name());
    if (!plan.session_base.empty()) {
      session_.emplace(plan.session_base);
      folders.push_back(session_->path().string());
    }
    start_deadline_ = Clock::now() + dist::mpi_options().start_limit;
  }
  start(folders);
  launcher_ = processes_[0]->pid();
}

void LaunchAttempt::start(const std::vector<std::string>& folders) {
  environment_ = plan_.environment;
  if (session_) {
    environment_["OMPI_MCA_orte_tmpdir_base"] = session_->path().string();
    environment_["PRTE_MCA_prte_tmpdir_base"] = session_->path().string();
  }
  care_ = {term_to_kill(plan_), folders, session_ ? session_->path() : std::filesystem::path()};
  for (const LaunchPlan::Process& each : processes_of(plan_)) processes_.push_back(start(each));
}

std::unique_ptr<LaunchProcess> LaunchAttempt::start(const LaunchPlan::Process& process) {
  return std::make_unique<LaunchProcess>(
      process, environment_, tags_of(plan_), care_, [this](const OutputLine& line) {
        if (line.is_error && line.text.starts_with(train::kJoined) &&
            joining_.erase(line.rank) > 0) {
          say("rank {} came back", line.rank);
        }
        output_.take(line);
      });
}

void LaunchAttempt::bring_back(Clock::time_point now) {
  for (const int rank : comebacks_.take_due(now)) {
    // The job ends.
    if (terminating_ || asked_by_ != 0 || seen_failure_ || some_have_ended_well()) continue;
    LaunchPlan::Process again = processes_of(plan_)[static_cast<size_t>(rank)];
    again.command.emplace_back("--join");
    std::unique_ptr<LaunchProcess>& process = processes_[static_cast<size_t>(rank)];
    process->finish_output();
    joining_.insert(rank);
    process = start(again);
  }
}

LaunchAttempt::~LaunchAttempt() {
  processes_.clear();
  orphans_.kill_descendants();
  if (plan_.way != LaunchPlan::Way::kMpirun) return;
  std::vector<std::string> folders = session_folders(plan_);
  if (session_) folders.push_back(session_->path().string());
  remove_leftovers(launcher_, folders);
}

AttemptEnd LaunchAttempt::run(std::function<bool()> watch) {
  watch_ = std::move(watch);
  for (;;) {
    wait_for_something();
    while (const int signal = signals_.take()) take_signal(signal);
    read_output();
    watch_end();
    const bool ended = take_ends();
    watch_failure();
    if (ended) break;
    act_on_deadlines();
  }
  const int left = orphans_.kill_descendants();
  if (left > 0) {
    say("{} left {} process{} behind; killed", name_of(plan_), left, left == 1 ? "" : "es");
  }
  drain();
  AttemptEnd end = conclude();
  end.lost_log = output_.lost_log();
  end.failed_at = failed_at_.value_or(Clock::now());
  return end;
}

void LaunchAttempt::wait_for_something() {
  std::optional<Clock::time_point> next;
  for (const auto& each : {deadline_, start_deadline_, request_deadline_, grace_deadline_,
                           failure_deadline_, end_deadline_, outside_deadline_, kill_deadline_,
                           output_.held_until(), comebacks_.next()}) {
    if (each && (!next || *each < *next)) next = each;
  }
  int wait = -1;
  if (next) {
    const auto left = std::chrono::ceil<milliseconds>(*next - Clock::now()).count();
    wait = static_cast<int>(std::clamp<int64_t>(left, 0, 1 << 30));
  }
  // Nothing tells that a rank is stopped.
  if (some_have_ended_well() && wait < 0) wait = static_cast<int>(kStoppedCheck.count());
  if (request_pending_ || watch_) wait = static_cast<int>(kRetry.count());
  // Closed descriptors are -1, which poll ignores.
  std::vector<pollfd> polled = {{signals_.fd(), POLLIN, 0}};
  for (const auto& process : processes_) {
    for (const int fd : process->descriptors()) polled.push_back({fd, POLLIN, 0});
  }
  const int ready = ::poll(polled.data(), polled.size(), wait);
  LS_CHECK(ready >= 0 || errno == EINTR, Error, "[launch] poll failed: {}.", std::strerror(errno));
}

void LaunchAttempt::read_output() {
  for (const auto& process : processes_) process->read_output();
}

bool LaunchAttempt::take_ends() {
  bool all = true;
  for (const auto& process : processes_) {
    const bool just_now = process->take_end();
    all = all && process->status();
    if (!just_now || launches() || terminating_) continue;
    if (ended_well(*process->status())) continue;
    if (joining_.contains(process->rank()) && is_over()) continue;
    note_failure(failure_of(process->rank(), *process->status()));
  }
  return all;
}

void LaunchAttempt::note_failure(const LaunchFailure& failure) {
  const bool explains = seen_loss_ && is_consequence(*seen_loss_) && !is_consequence(failure);
  if (!seen_loss_ || explains) seen_loss_ = failure;
  if (!is_consequence(failure)) lost_.push_back(failure.rank);
  const int fewest = plan_.options.fewest_left;
  if (!seen_failure_ && fewest > 0 && ranks_left() >= fewest && training_has_begun()) {
    say("{}; the others go on", to_text(failure));
    const std::string next =
        comebacks_.after(failure, read_progress(plan_.run_directory).saved_in_time, Clock::now());
    if (!next.empty()) say("{}", next);
    return;
  }
  seen_failure_ = seen_loss_;
}

bool LaunchAttempt::training_has_begun() const {
  return plan_.trains && bytes_of_starts(plan_) > starts_before_;
}

int LaunchAttempt::ranks_left() const {
  return static_cast<int>(std::ranges::count_if(processes_, [&](const auto& each) {
    const bool is_there = !each->status() || ended_well(*each->status());
    return is_there && !joining_.contains(each->rank());
  }));
}

bool LaunchAttempt::some_have_ended_well() const {
  return !launches() && std::ranges::any_of(processes_, [](const auto& each) {
    return each->status() && ended_well(*each->status());
  });
}

bool LaunchAttempt::is_over() const {
  return some_have_ended_well() && std::ranges::all_of(processes_, [&](const auto& each) {
           return each->status() || joining_.contains(each->rank());
         });
}

void LaunchAttempt::end_left_out() {
  if (plan_.options.fewest_left == 0 || !some_have_ended_well()) return;
  for (const auto& process : processes_) {
    if (!process->status() && is_stopped(process->pid())) process->child().signal_group(SIGKILL);
  }
}

void LaunchAttempt::end_outside() {
  for (const auto& process : processes_) {
    if (process->status()) continue;
    say("rank {} has not joined the others, which have ended: ending it", process->rank());
    process->child().signal_group(SIGKILL);
  }
}

const std::optional<LaunchFailure>& LaunchAttempt::failure() const {
  return launches() ? output_.failure() : seen_failure_;
}

void LaunchAttempt::watch_failure() {
  if (!failure()) return;
  if (!failed_at_) failed_at_ = Clock::now();
  if (terminating_) return;
  if (launches() && output_.start_is_broken()) {
    terminate();
  } else if (!failure_deadline_) {
    failure_deadline_ = Clock::now() + (launches() ? kFailureToTerm : kLossToTerm);
  }
}

bool LaunchAttempt::is_saving(Clock::time_point now) const {
  return !launches() && plan_.trains && now < *failed_at_ + kLossToTermInSave &&
         writes_checkpoint(plan_.run_directory, begun_);
}

void LaunchAttempt::watch_end() {
  if (!launches()) return;
  if (!end_deadline_ && !hangs_ && !terminating_ && output_.ended_well() == plan_.ranks) {
    end_deadline_ = Clock::now() + kRanksToEnd;
  }
}

void LaunchAttempt::take_signal(int signal) {
  if (asked_by_ == 0) {
    asked_by_ = signal;
    say("{}: asking all ranks to save and stop within {} s; a second signal ends them now",
        signal_name(signal), plan_.options.grace_seconds);
    request_pending_ = true;
    request_deadline_ = Clock::now() + kRequestWait;
    grace_deadline_ =
        Clock::now() +
        std::chrono::ceil<milliseconds>(std::chrono::duration<double>(plan_.options.grace_seconds));
    try_request();
  } else if (!terminating_) {
    say("{} again: ending all ranks", signal_name(signal));
    forced_ = true;
    terminate();
  } else {
    kill();
  }
}

bool LaunchAttempt::ranks_are_there() const {
  if (!launches() || output_.ranks_run()) return true;
  // Until the launcher has installed its handler, the signal would end it.
  if (!processes_[0]->child().catches(SIGUSR1)) return false;
  if (plan_.way == LaunchPlan::Way::kSrun) return true;
  if (tags_of(plan_) == OutputTags::kOpenMpi4) return false;
  const std::string own = program_of(launcher_);
  return std::ranges::any_of(descendants(launcher_), [&](pid_t pid) {
    const std::string program = program_of(pid);
    return !program.empty() && program != own;
  });
}

void LaunchAttempt::try_request() {
  if (!ranks_are_there()) return;
  request_pending_ = false;
  request_deadline_.reset();
  send(SIGUSR1);
}

void LaunchAttempt::send(int signal) {
  for (const auto& process : processes_) {
    if (launches()) {
      process->child().signal(signal);  // the launcher forwards it to every rank
    } else {
      process->child().signal_group(signal);
    }
  }
}

void LaunchAttempt::act_on_deadlines() {
  const Clock::time_point now = Clock::now();
  const auto due = [&](std::optional<Clock::time_point>& deadline) {
    if (!deadline || now < *deadline) return false;
    deadline.reset();
    return true;
  };
  if (due(deadline_)) {
    timed_out_ = true;
    say("the time limit of {} s is reached: ending all ranks", plan_.options.timeout_seconds);
    terminate();
  }
  if (request_pending_ && !terminating_) try_request();
  if (due(request_deadline_)) {
    request_unsent_ = true;
    terminate();
  }
  if (due(grace_deadline_) && !terminating_) {
    say("ranks did not stop within {} s: ending them", plan_.options.grace_seconds);
    forced_ = true;
    terminate();
  }
  // Open MPI 5 and Slurm do not report when all ranks run.
  if (due(start_deadline_) && !terminating_ && !output_.ranks_run() &&
      tags_of(plan_) == OutputTags::kOpenMpi4) {
    start_failed_ = true;
    say("mpirun has not started all ranks within {} s: ending it. See what it says with --mca "
        "plm_base_verbose 5; LOCKSTEP_START_LIMIT allows more time",
        std::chrono::duration_cast<seconds>(dist::mpi_options().start_limit).count());
    terminate();
  }
  if (failure_deadline_ && now >= *failure_deadline_ && is_saving(now)) {
    failure_deadline_ = now + kSaveCheck;
  }
  if (due(failure_deadline_) && !terminating_) {
    launches() ? say("{} does not end the other ranks: ending them", name_of(plan_))
               : say("the other ranks do not end: ending them");
    terminate();
  }
  // Processes that ranks have started with MPI_Comm_spawn may go on.
  if (due(end_deadline_) && !terminating_ && descendants(launcher_).empty()) {
    hangs_ = true;
    say("all ranks have ended, but {} does not: ending it", name_of(plan_));
    terminate();
  }
  if (due(kill_deadline_)) kill();
  end_left_out();
  if (!outside_deadline_ && is_over()) outside_deadline_ = now + kOverToEnd;
  if (due(outside_deadline_)) end_outside();
  bring_back(now);
  if (watch_ && watch_()) watch_ = {};
  output_.show_what_is_due(now);
}

void LaunchAttempt::terminate() {
  if (terminating_) return;
  terminating_ = true;
  request_pending_ = false;
  kill_deadline_ = Clock::now() + term_to_kill(plan_);
  send(SIGTERM);
  send(SIGCONT);
}

void LaunchAttempt::kill() {
  if (killed_) return;
  killed_ = true;
  terminating_ = true;
  // Kills each descendant, since the launcher puts ranks into separate process groups.
  const auto is_warden = [&](pid_t pid) {
    return std::ranges::any_of(processes_, [&](const auto& each) { return each->warden() == pid; });
  };
  for (const pid_t pid : descendants(::getpid())) {
    if (!is_warden(pid)) (void)::kill(pid, SIGKILL);
  }
  for (const auto& process : processes_) process->child().signal_group(SIGKILL);
}

void LaunchAttempt::drain() {
  const Clock::time_point until = Clock::now() + seconds(1);
  const auto is_open = [](const auto& process) { return process->output_is_open(); };
  while (std::ranges::any_of(processes_, is_open) && Clock::now() < until) {
    std::vector<pollfd> polled;
    for (const auto& process : processes_) {
      polled.push_back({process->child().output_fd(), POLLIN, 0});
      polled.push_back({process->child().errors_fd(), POLLIN, 0});
    }
    if (::poll(polled.data(), polled.size(), 50) < 0 && errno != EINTR) break;
    read_output();
  }
  for (const auto& process : processes_) process->finish_output();
  output_.finish();
}

int LaunchAttempt::wait_status() const {
  int most = *processes_[0]->status();
  if (seen_loss_ && !seen_failure_) {  // the others went on, and ended well
    for (const auto& process : processes_) {
      if (ended_well(*process->status())) return *process->status();
    }
  }
  for (const auto& process : processes_) {
    if (seen_failure_ && process->rank() == seen_failure_->rank) return *process->status();
    if (most == 0) most = *process->status();
  }
  return most;
}

/// Returns the exit status of the rank that failed first if it is known, else that of the launcher:
/// mpirun may crash when it has lost a host, or hang until it is ended.
int LaunchAttempt::status_of(int wait_status) const {
  if (const auto& failure = this->failure()) {
    if (failure->signal != 0) return 128 + failure->signal;
    if (failure->status != 0) return failure->status;
  }
  if (hangs_) return kSuccess;
  const bool told_nothing = WIFSIGNALED(wait_status) || terminating_;
  if (told_nothing && asked_by_ == 0 && !output_.first_error_kind().empty()) {
    return exit_code_of(output_.first_error_kind());
  }
  return WIFEXITED(wait_status) ? WEXITSTATUS(wait_status) : 128 + WTERMSIG(wait_status);
}

void LaunchAttempt::complete(LaunchFailure& failure, int status) const {
  // A launcher may report which rank failed but not how; its own exit status is then that rank's.
  if (failure.rank < 0 || !failure.text.empty() || !WIFEXITED(wait_status())) return;
  failure.signal = status > 128 ? status - 128 : 0;
  failure.text = status > 128 ? "was ended by " + signal_text(failure.signal)
                              : fmt::format("ended with exit status {}", status);
}

AttemptEnd LaunchAttempt::conclude() {
  AttemptEnd end;
  const int wait_status = this->wait_status();
  const int status = status_of(wait_status);
  end.status = status;
  if (timed_out_) {
    end.status = kTimedOut;
    return end;
  }
  if (start_failed_ && asked_by_ == 0) {
    end.status = kCommunication;
    end.message = "the ranks were not started in time";
    end.failed = true;
    return end;
  }
  if (status == kSuccess) return end;
  if (status == kStopped) {
    end.message = "stopped with everything saved";
    return end;
  }
  if (failure()) {
    end.failure = *failure();
  } else if (!launches()) {
    end.failure = failure_of(processes_[0]->rank(), wait_status);
  }
  complete(end.failure, status);
  end.lost = lost_;
  if (status == kSlowRank) {
    for (const std::string& line : output_.tail(output_.first_error_rank())) {
      const std::optional<LaunchFailure> slow = read_slow_rank(line, status);
      if (!slow) continue;
      end.failure = *slow;
      end.lost = {slow->rank};
      end.message = to_text(*slow);
      end.failed = asked_by_ == 0;
      return end;
    }
  }
  // SIGUSR1 ends ranks that do not handle the request, which counts as the requested stop. A rank
  // that failed while saving is still a failure.
  const bool ended_by_request = end.failure.signal != 0 || end.failure.rank < 0 || terminating_;
  if (asked_by_ != 0 && ended_by_request) {
    // A rank of a training run that does not take the request has not begun, nor have the others,
    // as all of them wait for each other before the first step.
    const bool too_early =
        plan_.trains && !forced_ && (request_unsent_ || end.failure.signal == SIGUSR1);
    end.status = too_early ? kStopped : 128 + asked_by_;
    end.message = too_early ? "stopped before the first step; there was nothing to save"
                            : fmt::format("ended by {}", signal_name(asked_by_));
    return end;
  }
  end.message = to_text(end.failure);
  if (end.message.empty()) {
    end.message =
        WIFSIGNALED(wait_status)
            ? fmt::format("{} was ended by {}", name_of(plan_), signal_text(WTERMSIG(wait_status)))
            : fmt::format("{} ended with exit status {}", name_of(plan_), status);
  }
  // A rank that reports the loss of another may end before that one; the other is the cause.
  const int complaint = output_.first_error_rank();
  const bool lost_another = status == kCommunication && complaint >= 0 && end.failure.rank >= 0 &&
                            complaint != end.failure.rank;
  if (lost_another) end.message += fmt::format(", after an error of rank {}", complaint);
  if (end.failure.rank < 0 || lost_another) end.failure.rank = complaint;
  if (end.failure.rank >= 0) end.log = output_.tail(end.failure.rank);
  // Errors of config and data and non-finite losses would recur, so a restart does not help.
  const bool again = plan_.trains && (status == kUsage || status == kData || status == kNonFinite);
  end.failed = asked_by_ == 0 && !again;
  return end;
}

}  // namespace lockstep::launcher

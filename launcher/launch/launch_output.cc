#include "launcher/launch/launch_output.h"

#include <fcntl.h>
#include <fmt/chrono.h>

#include <algorithm>
#include <cstdio>
#include <ctime>
#include <filesystem>
#include <span>
#include <system_error>

#include "core/base/check.h"
#include "core/base/log_text.h"
#include "dist/rendezvous/rank_list.h"

namespace lockstep::launcher {
namespace {

constexpr size_t kTailLines = 20;
constexpr size_t kTailBytes = 16 * 1024;  // kept of each line
/// Time that equal errors of other ranks have to come. What is held is shown at the end of the
/// output anyway: only where a rank hangs does its error come so much later.
constexpr std::chrono::milliseconds kHeldBack(2000);

bool is_rule(const std::string& text) {
  return text.size() >= 40 && text.find_first_not_of('-') == text.npos;
}

std::string time_now() {
  const std::time_t now = std::time(nullptr);
  return fmt::format("{:%Y-%m-%dT%H:%M:%S}", fmt::localtime(now));
}

/// Whether a line is the first of a program's error.
bool begins_error(const std::string& text) {
  const size_t at = text.find("Error: ");
  return at != text.npos && at < 60;
}

/// Whether a line reports the error that ends a program: "TimeoutError: [all_reduce] ..." or
/// "rank 3: Error: ...".
bool is_complaint(const std::string& text) {
  return begins_error(text) && text.find("PeerLostError: ") == text.npos;
}

/// Returns "TimeoutError" for "rank 3: TimeoutError: [all_reduce] ...".
std::string error_class(const std::string& text) {
  const size_t end = text.find("Error: ") + std::string_view("Error").size();
  const size_t space = text.rfind(' ', end);
  const size_t begin = space == text.npos ? 0 : space + 1;
  return text.substr(begin, end - begin);
}

}  // namespace

LaunchOutput::LaunchOutput(const LaunchOptions& options, bool append)
    : options_(options), append_(append) {
  if (options_.output_folder.empty()) return;
  std::error_code problem;
  std::filesystem::create_directories(options_.output_folder, problem);
  LS_CHECK(!problem, DataError, "[launch] the folder {} for ranks' output cannot be made: {}.",
           options_.output_folder, problem.message());
}

void LaunchOutput::take(const OutputLine& line) {
  if (line.rank < 0) {
    take_launcher_line(line.text);
    return;
  }
  std::deque<std::string>& tail = tails_[line.rank];
  tail.push_back(line.text.substr(0, kTailBytes));
  if (tail.size() > kTailLines) tail.pop_front();
  if (line.is_error && first_complaint_ < 0 && begins_error(line.text)) {
    first_kind_ = error_class(line.text);
    if (is_complaint(line.text)) first_complaint_ = line.rank;
  }
  if (!hold(line)) show(line);
  if (!options_.output_folder.empty()) write_file(line);
}

void LaunchOutput::finish() {
  show_held();
  end_block();
}

void LaunchOutput::show_what_is_due(Clock::time_point now) {
  if (held_until_ && now >= *held_until_) show_held();
}

/// Holds a line back if it is an error, or follows one of the same rank that is held back.
bool LaunchOutput::hold(const OutputLine& line) {
  if (!line.is_error || options_.tag_output || options_.timestamp_output) return false;
  auto own = std::ranges::find(held_, line.rank, &std::pair<int, std::string>::first);
  if (own == held_.end()) {
    if (!begins_error(line.text)) return false;
    if (held_.empty()) held_until_ = Clock::now() + kHeldBack;
    own = held_.insert(held_.end(), {line.rank, ""});
  }
  own->second += line.text + "\n";
  return true;
}

void LaunchOutput::show_held() {
  held_until_.reset();
  const auto held = std::exchange(held_, {});
  std::vector<std::pair<std::string, std::vector<int>>> texts;
  for (const auto& [rank, text] : held) {
    auto known = std::ranges::find(texts, text, &std::pair<std::string, std::vector<int>>::first);
    if (known == texts.end()) known = texts.insert(known, {text, {}});
    known->second.push_back(rank);
  }
  for (auto& [text, ranks] : texts) {
    const std::string who = ranks.size() > 1 ? dist::rank_list(ranks) + ": " : "";
    text.pop_back();  // `show` ends the line
    show({ranks.front(), true, who + text});
  }
}

std::vector<std::string> LaunchOutput::tail(int rank) const {
  const auto found = tails_.find(rank);
  if (found == tails_.end()) return {};
  return {found->second.begin(), found->second.end()};
}

/// Keeps the first reported failure; a later report of the same rank may add details.
void LaunchOutput::note(const LaunchFailure& failure) {
  const bool more = failure_ && failure_->rank == failure.rank && failure_->host.empty();
  if (!failure_ || failure_->rank < 0 || (more && !failure.text.empty())) failure_ = failure;
}

/// Notices a rank that ended without MPI while another one uses it. mpirun itself does so only if
/// the other one was first, and else waits for ever.
void LaunchOutput::follow_start(const StateLine& state) {
  all_registered_ = all_registered_ || state.all_registered;
  if (state.registered) registered_.insert(*state.registered);
  // mpirun calls a rank that failed terminated, too, when the rest of its job ends.
  if (state.failure) failed_.insert(state.failure->rank);
  if (state.ended && !failed_.contains(*state.ended)) {
    ended_well_.insert(*state.ended);
    if (!ended_before_ && !registered_.contains(*state.ended)) ended_before_ = state.ended;
  }
  if (start_is_broken_ || all_registered_ || registered_.empty() || !ended_before_) return;
  start_is_broken_ = true;
  constexpr int kFailure = 1;  // mpirun's status for a rank that leaves out MPI_Finalize
  note({*ended_before_, "", 0, kFailure,
        "ended with exit status 0 before it came to MPI_Init, where the others wait for it"});
}

void LaunchOutput::take_launcher_line(const std::string& text) {
  // State lines can appear within a message block.
  if (const auto state = read_state(text)) {
    ranks_run_ = ranks_run_ || state->running;
    if (state->failure) note(*state->failure);
    follow_start(*state);
    return;
  }
  if (is_rule(text)) {
    if (block_) {
      end_block();
    } else {
      block_.emplace();
    }
    return;
  }
  if (block_) {
    *block_ += text + "\n";
    return;
  }
  if (text.find("Forwarding signal ") != text.npos) return;
  if (const auto found = read_failure(text)) {
    note(*found);
    return;
  }
  write(stderr, text + "\n");
}

void LaunchOutput::end_block() {
  if (!block_) return;
  const std::string block = *std::exchange(block_, std::nullopt);
  if (const auto found = read_failure(block)) {
    note(*found);
  } else {
    write(stderr, block);
  }
}

void LaunchOutput::show(const OutputLine& line) {
  if (!(line.is_error ? options_.show_stderr : options_.show_stdout)) return;
  std::string text;
  if (options_.timestamp_output) text += time_now() + " ";
  if (options_.tag_output) {
    text += fmt::format("[1,{}]<{}>:", line.rank, line.is_error ? "stderr" : "stdout");
  }
  text += line.text + "\n";
  std::FILE* const stream = line.is_error && !options_.merge_stderr ? stderr : stdout;
  write(stream, text);
}

void LaunchOutput::write(std::FILE* stream, const std::string& text) {
  if (const int error = write_log(stream, text); lost_log_ == 0) lost_log_ = error;
}

std::unique_ptr<FileDescriptor> LaunchOutput::open_file(int rank, bool is_error) const {
  const std::filesystem::path folder =
      std::filesystem::path(options_.output_folder) / "1" / fmt::format("rank.{}", rank);
  std::error_code problem;
  std::filesystem::create_directories(folder, problem);
  LS_CHECK(!problem, DataError, "[launch] the folder {} for a rank's output cannot be made: {}.",
           folder.string(), problem.message());
  return std::make_unique<FileDescriptor>(folder / (is_error ? "stderr" : "stdout"),
                                          O_WRONLY | O_CREAT | O_APPEND | (append_ ? 0 : O_TRUNC));
}

void LaunchOutput::write_file(const OutputLine& line) {
  const std::pair key(line.rank, line.is_error && !options_.merge_stderr);
  const auto known = files_.find(key);
  if (known != files_.end() && known->second == nullptr) return;
  try {
    if (known == files_.end()) files_[key] = open_file(key.first, key.second);
    const std::string text = line.text + "\n";
    files_[key]->write(std::as_bytes(std::span(text)));
  } catch (const DataError& error) {
    files_[key] = nullptr;
    write(stderr,
          fmt::format("lockstep launch: {} The job goes on without this file.\n", error.what()));
  }
}

}  // namespace lockstep::launcher

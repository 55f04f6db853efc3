#include <algorithm>
#include <map>
#include <utility>

#include "core/base/check.h"
#include "dist/flight/flight_analysis.h"
#include "dist/flight/flight_log.h"
#include "dist/rendezvous/rank_list.h"

namespace lockstep::dist {
namespace {

using State = FlightRecord::State;

/// Limit of lists that grow with the job; further elements are only counted.
constexpr size_t kMostShown = 24;
/// Placeholder for a duration in a line.
constexpr const char* kTime = "\x01";

/// Groups ranks with the same line of text, in the order in which lines were first added.
class LinesByRank {
 public:
  /// kTime in `line` is replaced by the largest `seconds` of its ranks.
  void add(int rank, const std::string& line, double seconds = 0) {
    const auto [at, added] = index_.try_emplace(line, lines_.size());
    if (added) lines_.push_back({line, {}, 0});
    Line& shared = lines_[at->second];
    shared.ranks.push_back(rank);
    shared.seconds = std::max(shared.seconds, seconds);
  }
  std::string text() const {
    std::string text;
    for (size_t i = 0; i < std::min(lines_.size(), kMostShown); ++i) {
      const Line& line = lines_[i];
      std::string shown = line.text;
      if (const size_t at = shown.find(kTime); at != shown.npos) {
        shown.replace(
            at, 1, fmt::format("{}{:.1f} s", line.ranks.size() > 1 ? "up to " : "", line.seconds));
      }
      text += fmt::format("  {}: {}\n", rank_list(line.ranks), shown);
    }
    if (lines_.size() > kMostShown) {
      text += fmt::format("  and {} more such lines\n", lines_.size() - kMostShown);
    }
    return text;
  }

 private:
  struct Line {
    std::string text;
    std::vector<int> ranks;
    double seconds;
  };
  std::map<std::string, size_t> index_;
  std::vector<Line> lines_;
};

std::string label_of(const FlightRecord& record) {
  return record.label[0] == '\0' ? "" : fmt::format(", of {}", record.label);
}

std::string described(const FlightRecord& record) {
  std::string text = to_string(record.signature);
  if (!is_collective(record.signature.kind)) text += fmt::format(", tag {}", record.user_tag);
  if (record.tensors > 1) text += fmt::format(", {} tensors together", record.tensors);
  return text + label_of(record);
}

std::string with_group(const FlightRecord& record) {
  return fmt::format("{} (group {})", described(record), record.group_name);
}

/// Describes the operation that all ranks of a group came to, or did not.
std::string described(const StuckOperation& stuck) {
  std::string text = to_string(stuck.versions.front().signature);
  if (!stuck.waiting.empty()) text += label_of(stuck.waiting.front().record);
  return text;
}

// --- one operation -------------------------------------------------------------------------------

std::string waiting_lines(const StuckOperation& stuck) {
  LinesByRank lines;
  for (const WaitingRank& waiting : stuck.waiting) {
    const bool failed = waiting.record.state == State::kFailed;
    std::string line;
    if (waiting.record.started_ns == 0) {
      line = failed ? "came to it; it failed before it started"
                    : fmt::format("came to it {} ago; it has not started, work before it goes on",
                                  kTime);
    } else if (!waiting.on.empty()) {
      line = fmt::format("{} {} for {}", failed ? "failed after waiting for" : "waiting for",
                         rank_list(waiting.on), kTime);
    } else if (stuck.versions.size() == 1) {
      line = fmt::format("{} {}", failed ? "failed in it after" : "in it for", kTime);
    } else {
      continue;  // its call is listed above
    }
    lines.add(waiting.rank, line, waiting.seconds);
  }
  return lines.text();
}

std::string absent_lines(const StuckOperation& stuck) {
  LinesByRank lines;
  for (const AbsentRank& absent : stuck.absent) {
    std::string line = "never came to it; last of the group: ";
    // It has ended: the group would stand at it otherwise.
    line += absent.last ? fmt::format("{}, done {} before the log", described(*absent.last), kTime)
                        : "none";
    line += "; now in: " + (absent.busy_with ? with_group(*absent.busy_with) : "no operation");
    lines.add(absent.rank, line, absent.seconds);
  }
  return lines.text();
}

std::string stuck_operation_lines(const StuckOperation& stuck) {
  const bool agreed = stuck.versions.size() == 1;
  std::string text =
      fmt::format("Group {} ({}) stands at {}:\n", stuck.group.name, rank_list(stuck.group.ranks),
                  agreed ? described(stuck)
                         : fmt::format("#{}, which its ranks disagree about", stuck.sequence));
  if (!agreed) {
    LinesByRank lines;
    for (const StuckOperation::Version& version : stuck.versions) {
      for (const int rank : version.ranks) {
        lines.add(rank, "called " + to_string(version.signature));
      }
    }
    text += lines.text();
  }
  text += waiting_lines(stuck) + absent_lines(stuck);
  if (!stuck.without_log.empty()) {
    text += fmt::format("  {}: no log\n", rank_list(stuck.without_log));
  }
  if (!stuck.done.empty()) {
    text += fmt::format("  {}: done with it\n", rank_list(stuck.done));
  }
  return text;
}

std::string message_lines(const std::vector<PendingMessage>& messages) {
  constexpr const char* kPeers[] = {"came to the other side of it",
                                    "did not come to the other side of it", "left no log"};
  LinesByRank lines;
  for (const PendingMessage& message : messages) {
    const WaitingRank& waiting = message.waiting;
    lines.add(waiting.rank,
              fmt::format("{} {} {}; rank {} {}", with_group(waiting.record),
                          waiting.record.state == State::kFailed ? "failed after" : "goes on for",
                          kTime, message.peer, kPeers[static_cast<int>(message.peer_is)]),
              waiting.seconds);
  }
  return "Sends and receives that did not end:\n" + lines.text();
}

// --- what it comes to ----------------------------------------------------------------------------

std::string disagreement_lines(const FlightAnalysis& analysis) {
  std::string text;
  for (const StuckOperation& stuck : analysis.stuck_operations) {
    if (stuck.versions.size() < 2) continue;
    text += fmt::format(
        "The ranks of group {} called different operations as number {} of the group. All must "
        "call the same ones in the same order.\n",
        stuck.group.name, stuck.sequence);
  }
  return text;
}

std::string cycle_line(const std::vector<WaitLink>& cycle) {
  if (cycle.empty()) return "";
  std::string line = "Likely a deadlock: ";
  for (size_t i = 0; i < cycle.size(); ++i) {
    line += fmt::format("{}rank {} waits for rank {} in {}", i == 0 ? "" : ", ", cycle[i].rank,
                        cycle[i].waits_for, with_group(cycle[i].record));
  }
  const bool groups = std::ranges::all_of(
      cycle, [](const WaitLink& link) { return is_collective(link.record.signature.kind); });
  return line + (groups ? ". All ranks must use the groups in the same order.\n"
                        : ". One of them must come to another's operation first.\n");
}

std::string idle_line(const FlightAnalysis& analysis) {
  constexpr size_t kMostPlaces = 4;
  const std::vector<int>& idle = analysis.idle;
  if (idle.empty()) return "";
  std::string line = fmt::format(
      "Others wait for {}, in no operation: see what the program does there, and the end of "
      "what it printed.",
      rank_list(idle));
  size_t shown = 0;
  for (const FlightLog* log : analysis.logs) {
    if (shown == kMostPlaces || std::ranges::find(idle, log->rank) == idle.end()) continue;
    line += fmt::format(" Rank {} was process {} on {}.", log->rank, log->process, log->host);
    ++shown;
  }
  return line + "\n";
}

std::string without_log_line(const FlightAnalysis& analysis) {
  std::vector<int> waited_for;
  const auto add = [&](const WaitingRank& waiting) {
    for (const int rank : waiting.on) {
      if (std::ranges::binary_search(analysis.without_log, rank)) waited_for.push_back(rank);
    }
  };
  for (const StuckOperation& stuck : analysis.stuck_operations) {
    std::ranges::for_each(stuck.waiting, add);
  }
  for (const PendingMessage& message : analysis.messages) add(message.waiting);
  if (waited_for.empty()) return "";
  return fmt::format(
      "Others wait for {}, without a log: killed, stopped, or the log lies elsewhere.\n",
      rank_list(waited_for));
}

/// Describes operations that all ranks called alike: only their data is missing.
std::string transfer_lines(const FlightAnalysis& analysis) {
  std::string text;
  for (const StuckOperation& stuck : analysis.stuck_operations) {
    if (stuck.versions.size() != 1 || !stuck.absent.empty() || !stuck.without_log.empty()) {
      continue;
    }
    std::vector<int> not_started, awaited;
    for (const WaitingRank& waiting : stuck.waiting) {
      if (waiting.record.started_ns == 0) not_started.push_back(waiting.rank);
      awaited.insert(awaited.end(), waiting.on.begin(), waiting.on.end());
    }
    std::string why = ".";
    if (!not_started.empty()) {
      why = fmt::format(": it has not started on {}.", rank_list(not_started));
    } else if (!awaited.empty()) {
      why = fmt::format(": data of {} did not arrive.", rank_list(awaited));
    }
    text += fmt::format("All ranks of group {} came to {}, which did not end{}\n", stuck.group.name,
                        described(stuck), why);
  }
  return text;
}

std::string conclusion(const FlightAnalysis& analysis) {
  if (analysis.stuck_operations.empty() && analysis.messages.empty()) {
    return "Every operation that a rank came to has ended.\n";
  }
  std::string text = disagreement_lines(analysis) + cycle_line(analysis.cycle) +
                     without_log_line(analysis) + idle_line(analysis);
  if (text.empty()) text = transfer_lines(analysis);
  if (text.empty()) text = "No rank stands out; what each waits for:\n";
  return text;
}

// --- what the logs are ---------------------------------------------------------------------------

std::string which_logs(const FlightAnalysis& analysis) {
  const size_t there = static_cast<size_t>(analysis.world_size) - analysis.without_log.size();
  std::string text = fmt::format("Logs of {} of {} ranks", there, analysis.world_size);
  if (!analysis.without_log.empty()) {
    text += fmt::format("; none of {}", rank_list(analysis.without_log));
  }
  text += ".\n";
  if (!analysis.other_starts.empty()) {
    text += fmt::format("Left out, being of another start of the job: logs of {}.\n",
                        rank_list(analysis.other_starts));
  }
  if (!analysis.other_worlds.empty()) {
    text += fmt::format("Left out, being of another job's number of ranks: logs of {}.\n",
                        rank_list(analysis.other_worlds));
  }
  return text;
}

std::string reason_lines(const std::vector<const FlightLog*>& logs) {
  LinesByRank lines;
  for (const FlightLog* log : logs) {
    std::string reason = log->reason.empty() ? "no reason" : log->reason;
    for (size_t at = 0; (at = reason.find('\n', at)) != reason.npos;) reason.insert(++at, "    ");
    lines.add(log->rank, reason);
  }
  return "Why the logs were written:\n" + lines.text();
}

}  // namespace

std::string explain(const std::vector<FlightLog>& logs) {
  if (logs.empty()) return "There are no logs.\n";
  const FlightAnalysis analysis = analyse(logs);
  std::string text = which_logs(analysis) + conclusion(analysis);
  const size_t shown = std::min(analysis.stuck_operations.size(), kMostShown);
  for (size_t i = 0; i < shown; ++i)
    text += "\n" + stuck_operation_lines(analysis.stuck_operations[i]);
  if (shown < analysis.stuck_operations.size()) {
    text += fmt::format("\nand {} more groups\n", analysis.stuck_operations.size() - shown);
  }
  if (!analysis.messages.empty()) text += "\n" + message_lines(analysis.messages);
  return text + "\n" + reason_lines(analysis.logs);
}

}  // namespace lockstep::dist

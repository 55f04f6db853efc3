#include "dist/flight/flight_analysis.h"

#include <algorithm>
#include <limits>
#include <map>
#include <set>
#include <utility>

namespace lockstep::dist {
namespace {

using Logs = std::map<int, const FlightLog*>;                 ///< by rank
using Collectives = std::map<uint64_t, const FlightRecord*>;  ///< by sequence

bool is_open(const FlightRecord& record) { return record.state != FlightRecord::State::kDone; }

double seconds_between(int64_t from, int64_t to) {
  return std::max(0.0, (static_cast<double>(to) - static_cast<double>(from)) * 1e-9);
}

/// Returns when the operation was called: from then on others may wait for its rank.
int64_t begin_of(const FlightRecord& record) { return record.queued_ns; }

/// A group as described by all logs, with the collectives that each rank's log contains.
struct GroupView {
  FlightGroup group;
  std::map<int, Collectives> collectives;  ///< by rank, of each that has a log
  std::map<int, uint64_t> newest;          ///< by rank

  int job_rank(int group_rank) const {
    const auto rank = static_cast<size_t>(group_rank);
    return rank < group.ranks.size() ? group.ranks[rank] : group_rank;
  }
  FlightRecord with_job_ranks(FlightRecord record) const {
    const OpKind kind = record.signature.kind;
    if (kind == OpKind::kBroadcast || kind == OpKind::kReduce || !is_collective(kind)) {
      record.signature.root = job_rank(record.signature.root);
    }
    return record;
  }
  const FlightRecord* at(int rank, uint64_t sequence) const {
    const Collectives& of_rank = collectives.at(rank);
    const auto record = of_rank.find(sequence);
    return record == of_rank.end() ? nullptr : record->second;
  }
  bool has_come_to(int rank, uint64_t sequence) const {
    const auto found = newest.find(rank);
    return found != newest.end() && found->second >= sequence;
  }
};

/// Returns the newest log of each rank, for the start and world size of the newest log of all.
Logs current_logs(const std::vector<FlightLog>& logs, FlightAnalysis& analysis) {
  Logs current;
  if (logs.empty()) return current;
  const auto newest_of_all = std::ranges::max_element(logs, {}, &FlightLog::written_ns);
  analysis.start = newest_of_all->start;
  analysis.world_size = newest_of_all->world_size;
  for (const FlightLog& log : logs) {
    if (log.start != analysis.start) {
      analysis.other_starts.push_back(log.rank);
      continue;
    }
    if (log.world_size != analysis.world_size) {
      analysis.other_worlds.push_back(log.rank);
      continue;
    }
    const FlightLog*& newest = current[log.rank];
    if (newest == nullptr || newest->written_ns < log.written_ns) newest = &log;
  }
  for (const auto& [rank, log] : current) analysis.logs.push_back(log);
  for (int rank = 0; rank < analysis.world_size; ++rank) {
    if (!current.contains(rank)) analysis.without_log.push_back(rank);
  }
  return current;
}

std::map<uint64_t, GroupView> group_views(const Logs& logs) {
  std::map<uint64_t, GroupView> views;
  for (const auto& [rank, log] : logs) {
    for (const FlightGroup& group : log->groups) {
      GroupView& view = views[group.id];
      if (view.group.ranks.empty()) view.group = group;
      if (group.newest) view.newest[rank] = *group.newest;
    }
    for (const FlightRecord& record : log->records) {
      const Signature& signature = record.signature;
      GroupView& view = views[signature.group];
      if (view.group.name.empty()) {
        view.group.id = signature.group;
        view.group.name = record.group_name;
      }
      if (!is_collective(signature.kind)) continue;
      view.collectives[rank][signature.sequence] = &record;
      uint64_t& newest = view.newest.try_emplace(rank, 0).first->second;
      newest = std::max(newest, signature.sequence);
    }
  }
  for (auto& [id, view] : views) {
    for (const auto& [rank, log] : logs) view.collectives[rank];
    view.group.newest.reset();
    for (const auto& [rank, newest] : view.newest) {
      std::vector<int>& ranks = view.group.ranks;
      if (std::ranges::find(ranks, rank) == ranks.end()) ranks.push_back(rank);
    }
  }
  return views;
}

/// Returns the first sequence number for which ranks recorded different operations.
std::optional<uint64_t> first_difference(const GroupView& view) {
  std::map<uint64_t, const Signature*> seen;
  std::optional<uint64_t> first;
  for (const auto& [rank, collectives] : view.collectives) {
    for (const auto& [sequence, record] : collectives) {
      if (first && sequence >= *first) break;
      const auto [known, added] = seen.try_emplace(sequence, &record->signature);
      if (!added && !(*known->second == record->signature)) first = sequence;
    }
  }
  return first;
}

/// Returns the first sequence number for which ranks differ or one has not ended.
std::optional<uint64_t> first_standing(const GroupView& view) {
  std::optional<uint64_t> first = first_difference(view);
  for (const auto& [rank, collectives] : view.collectives) {
    for (const auto& [sequence, record] : collectives) {
      if (first && sequence >= *first) break;
      if (is_open(*record)) first = sequence;
    }
  }
  return first;
}

/// Returns the ranks that the unfinished operation `record` waits for: those that have not called
/// it, as the others wait themselves; if all have called it, those whose data is missing.
std::vector<int> awaited(const GroupView& view, const Logs& logs, const FlightRecord& record) {
  constexpr size_t kMaskBits = 64;
  std::vector<int> ranks, absent;
  const bool told = record.awaited_ranks != 0;
  for (size_t i = 0; i < view.group.ranks.size(); ++i) {
    const int rank = view.group.ranks[i];
    const bool came = logs.contains(rank) && view.has_come_to(rank, record.signature.sequence);
    if (told && i < kMaskBits ? (record.awaited_ranks >> i & 1) == 0 : came) continue;
    (came ? ranks : absent).push_back(rank);
  }
  return absent.empty() ? ranks : absent;
}

WaitingRank waiting_rank(int rank, const FlightRecord& record, const FlightLog& log) {
  const int64_t end = record.ended_ns != 0 ? record.ended_ns : log.written_ns;
  return {rank, record, {}, seconds_between(begin_of(record), end)};
}

std::optional<FlightRecord> oldest_open(const FlightLog& log,
                                        const std::map<uint64_t, GroupView>& views) {
  for (const FlightRecord& record : log.records) {
    if (is_open(record)) return views.at(record.signature.group).with_job_ranks(record);
  }
  return std::nullopt;
}

AbsentRank absent_rank(int rank, const GroupView& view, const FlightLog& log,
                       const std::map<uint64_t, GroupView>& views) {
  AbsentRank absent;
  absent.rank = rank;
  absent.busy_with = oldest_open(log, views);
  const Collectives& collectives = view.collectives.at(rank);
  if (!collectives.empty()) {
    const FlightRecord& last = *collectives.rbegin()->second;
    absent.last = view.with_job_ranks(last);
    absent.seconds = seconds_between(last.ended_ns, log.written_ns);
  }
  return absent;
}

StuckOperation stuck_operation_at(uint64_t sequence, const GroupView& view, const Logs& logs,
                                  const std::map<uint64_t, GroupView>& views) {
  StuckOperation stuck;
  stuck.group = view.group;
  stuck.sequence = sequence;
  for (const int rank : view.group.ranks) {
    const auto log = logs.find(rank);
    if (log == logs.end()) {
      stuck.without_log.push_back(rank);
      continue;
    }
    const FlightRecord* record = view.at(rank, sequence);
    if (record == nullptr) {
      if (view.has_come_to(rank, sequence)) {
        stuck.done.push_back(rank);  // its record was overwritten
      } else {
        stuck.absent.push_back(absent_rank(rank, view, *log->second, views));
      }
      continue;
    }
    const FlightRecord shown = view.with_job_ranks(*record);
    auto version =
        std::ranges::find(stuck.versions, shown.signature, &StuckOperation::Version::signature);
    if (version == stuck.versions.end()) {
      version = stuck.versions.insert(version, {shown.signature, {}});
    }
    version->ranks.push_back(rank);
    if (is_open(*record)) {
      WaitingRank waiting = waiting_rank(rank, shown, *log->second);
      waiting.on = awaited(view, logs, *record);
      stuck.waiting.push_back(std::move(waiting));
    } else {
      stuck.done.push_back(rank);
    }
  }
  return stuck;
}

/// Whether `peer` has called the counterpart of `record`, a message of `rank`. Messages of one tag
/// between two ranks have the same sequence numbers on both sides.
bool has_come_to_message(const GroupView& view, const FlightLog& peer, int rank,
                         const FlightRecord& record) {
  const OpKind other = record.signature.kind == OpKind::kSend ? OpKind::kReceive : OpKind::kSend;
  return std::ranges::any_of(peer.records, [&](const FlightRecord& candidate) {
    return candidate.signature.kind == other && candidate.user_tag == record.user_tag &&
           candidate.signature.group == record.signature.group &&
           candidate.signature.sequence >= record.signature.sequence &&
           view.job_rank(candidate.signature.root) == rank;
  });
}

std::vector<PendingMessage> pending_messages(const Logs& logs,
                                             const std::map<uint64_t, GroupView>& views) {
  std::vector<PendingMessage> pending;
  for (const auto& [rank, log] : logs) {
    for (const FlightRecord& record : log->records) {
      if (is_collective(record.signature.kind) || !is_open(record)) continue;
      const GroupView& view = views.at(record.signature.group);
      PendingMessage message;
      message.group = view.group;
      message.waiting = waiting_rank(rank, view.with_job_ranks(record), *log);
      message.peer = view.job_rank(record.signature.root);
      message.waiting.on = {message.peer};
      const auto peer = logs.find(message.peer);
      using Peer = PendingMessage::Peer;
      if (peer == logs.end()) {
        message.peer_is = Peer::kWithoutLog;
      } else if (!has_come_to_message(view, *peer->second, rank, record)) {
        message.peer_is = Peer::kNotCome;
      }
      pending.push_back(std::move(message));
    }
  }
  std::ranges::stable_sort(
      pending, {}, [](const PendingMessage& message) { return begin_of(message.waiting.record); });
  return pending;
}

int64_t begin_of(const StuckOperation& stuck) {
  int64_t begin = std::numeric_limits<int64_t>::max();
  for (const WaitingRank& waiting : stuck.waiting) {
    begin = std::min(begin, begin_of(waiting.record));
  }
  return begin;
}

/// Returns a link for each wait of a rank for one that has not called the operation.
std::vector<WaitLink> links(const FlightAnalysis& analysis) {
  std::vector<WaitLink> links;
  for (const StuckOperation& stuck : analysis.stuck_operations) {
    for (const WaitingRank& waiting : stuck.waiting) {
      for (const AbsentRank& absent : stuck.absent) {
        if (std::ranges::find(waiting.on, absent.rank) == waiting.on.end()) continue;
        links.push_back({waiting.rank, absent.rank, waiting.record});
      }
    }
  }
  for (const PendingMessage& message : analysis.messages) {
    if (message.peer_is != PendingMessage::Peer::kNotCome) continue;
    links.push_back({message.waiting.rank, message.peer, message.waiting.record});
  }
  return links;
}

/// Returns a shortest cycle through `start`, or an empty list.
std::vector<WaitLink> cycle_through(int start, const std::vector<WaitLink>& links) {
  std::multimap<int, const WaitLink*> from;
  for (const WaitLink& link : links) from.emplace(link.rank, &link);
  std::map<int, const WaitLink*> reached_by;
  std::vector<int> frontier = {start};
  while (!frontier.empty() && !reached_by.contains(start)) {
    std::vector<int> next;
    for (const int rank : frontier) {
      const auto [first, last] = from.equal_range(rank);
      for (auto link = first; link != last; ++link) {
        if (reached_by.try_emplace(link->second->waits_for, link->second).second) {
          next.push_back(link->second->waits_for);
        }
      }
    }
    frontier = std::move(next);
  }
  std::vector<WaitLink> cycle;
  if (!reached_by.contains(start)) return cycle;
  int rank = start;
  do {
    cycle.push_back(*reached_by.at(rank));
    rank = cycle.back().rank;
  } while (rank != start);
  std::ranges::reverse(cycle);
  return cycle;
}

std::vector<WaitLink> find_cycle(std::vector<WaitLink> links) {
  // Repeatedly remove links to ranks that do not wait: they are not part of a cycle.
  for (size_t before = links.size() + 1; before != links.size();) {
    before = links.size();
    std::set<int> waiting;
    for (const WaitLink& link : links) waiting.insert(link.rank);
    std::erase_if(links, [&](const WaitLink& link) { return !waiting.contains(link.waits_for); });
  }
  std::set<int> candidates;
  for (const WaitLink& link : links) candidates.insert(link.rank);
  for (const int rank : candidates) {
    std::vector<WaitLink> cycle = cycle_through(rank, links);
    if (!cycle.empty()) return cycle;
  }
  return {};
}

std::vector<int> idle_ranks(const std::vector<WaitLink>& links, const Logs& logs) {
  std::set<int> idle;
  for (const WaitLink& link : links) {
    if (std::ranges::none_of(logs.at(link.waits_for)->records, is_open)) {
      idle.insert(link.waits_for);
    }
  }
  return {idle.begin(), idle.end()};
}

}  // namespace

FlightAnalysis analyse(const std::vector<FlightLog>& logs) {
  FlightAnalysis analysis;
  const Logs current = current_logs(logs, analysis);
  const std::map<uint64_t, GroupView> views = group_views(current);
  for (const auto& [id, view] : views) {
    if (const std::optional<uint64_t> sequence = first_standing(view)) {
      analysis.stuck_operations.push_back(stuck_operation_at(*sequence, view, current, views));
    }
  }
  std::ranges::stable_sort(analysis.stuck_operations, {},
                           [](const StuckOperation& stuck) { return begin_of(stuck); });
  analysis.messages = pending_messages(current, views);
  const std::vector<WaitLink> all_links = links(analysis);
  analysis.cycle = find_cycle(all_links);
  analysis.idle = idle_ranks(all_links, current);
  return analysis;
}

}  // namespace lockstep::dist

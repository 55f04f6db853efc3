#include "launcher/launch/launch_option_rows.h"

#include <algorithm>
#include <array>
#include <cctype>

#include "core/base/check.h"
#include "core/base/duration.h"
#include "core/base/nearest.h"
#include "core/base/parse_number.h"

namespace lockstep::launcher {

std::string with_dashes(std::string_view name) {
  return fmt::format("{}{}", name.size() == 1 ? "-" : "--", name);
}

namespace {

using Row = LaunchOptionRow;
using Target = LaunchOptionTarget;
using Values = std::span<const std::string>;

constexpr int kMostRanks = 1 << 20;

int positive(std::string_view option, const std::string& text, int least = 1) {
  const std::optional<int> value = parse_number<int>(text);
  LS_CHECK(value && *value >= least && *value <= kMostRanks, ConfigError,
           "[launch] {} needs a number: expected an integer from {} to {}, got {:?}.",
           with_dashes(option), least, kMostRanks, text);
  return *value;
}

double seconds_of(std::string_view option, const std::string& text) {
  const double value = parse_duration(text);
  LS_CHECK(value >= 0 && !text.empty(), ConfigError,
           "[launch] {} needs a time: expected seconds or H:MM:SS, got {:?}.", with_dashes(option),
           text);
  return value;
}

std::string non_empty(std::string_view option, const std::string& text) {
  LS_CHECK(!text.empty(), ConfigError, "[launch] {} is empty: expected a value.",
           with_dashes(option));
  return text;
}

/// Applies torchrun's --tee: 1 is stdout, 2 stderr, 3 both.
void tee(LaunchOptions& options, const std::string& text) {
  const std::optional<int> streams = parse_number<int>(text);
  LS_CHECK(streams && *streams >= 0 && *streams <= 3, ConfigError,
           "[launch] --tee names the streams that files and terminal both get: expected 0, 1 "
           "(stdout), 2 (stderr) or 3, got {:?}.",
           text);
  options.show_stdout = (*streams & 1) != 0;
  options.show_stderr = (*streams & 2) != 0;
}

void output_folder(LaunchOptions& options, std::string text) {
  constexpr std::string_view kNoCopy = ":nocopy";
  if (text.ends_with(kNoCopy)) {
    text.resize(text.size() - kNoCopy.size());
    options.show_stdout = options.show_stderr = false;
  }
  options.output_folder = non_empty("output-filename", text);
}

void nodes(LaunchOptions& options, const std::string& text) {
  LS_CHECK(text.find(':') == text.npos, ConfigError,
           "[launch] --nnodes {} asks for a changing number of nodes: expected one number. A run "
           "may be restarted on another number of ranks instead.",
           text);
  options.nodes = positive("nnodes", text);
}

void ranks_per_node(LaunchOptions& options, const std::string& text) {
  LS_CHECK(
      text != "gpu", ConfigError,
      "[launch] --nproc-per-node gpu is not counted here: expected a number, auto or cpu. Give "
      "the number of GPUs of a node.");
  // -1: planning counts the cores.
  options.ranks_per_node = text == "auto" || text == "cpu" ? -1 : positive("nproc-per-node", text);
}

/// A flag that is passed to mpirun unchanged.
Row passed(std::vector<std::string_view> names, const char* text) {
  const std::string option = with_dashes(names[0]);
  return {std::move(names), {}, text, [option](Target t, Values) {
            t.options.passed.push_back(option);
          }};
}

/// An option with a value that is passed to mpirun unchanged.
Row passed(std::vector<std::string_view> names, std::string_view value, const char* text) {
  const std::string_view name = names[0];
  return {std::move(names), {value}, text, [name](Target t, Values v) {
            t.options.passed.push_back(with_dashes(name));
            t.options.passed.push_back(non_empty(name, v[0]));
          }};
}

/// An option of torchrun that has nothing to do here: any of `values`, or any text at all.
Row without_effect(std::vector<std::string_view> names, std::string_view value, const char* text,
                   std::vector<std::string_view> values = {}) {
  const std::string_view name = names[0];
  return {std::move(names), {value}, text, [name, values](Target, Values v) {
            LS_CHECK(
                values.empty() || std::ranges::find(values, std::string_view(v[0])) != values.end(),
                ConfigError, "[launch] {} is {}: expected one of {}.", with_dashes(name), v[0],
                fmt::join(values, ", "));
          }};
}

/// The items of a list with commas.
std::vector<std::string> items_of(const std::string& text) {
  std::vector<std::string> items;
  for (size_t begin = 0; begin <= text.size();) {
    const size_t end = std::min(text.find(',', begin), text.size());
    items.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return items;
}

[[noreturn]] void unknown_item(std::string_view option, const std::string& item,
                               std::span<const std::string_view> known) {
  const std::optional<std::string_view> meant = nearest(item, known);
  throw ConfigError(fmt::format("[launch] {} has no {:?}: expected some of {}.{}",
                                with_dashes(option), item, fmt::join(known, ", "),
                                meant ? fmt::format(" Did you mean {}?", *meant) : ""));
}

/// Applies Open MPI 5's --display.
void display(LaunchOptions& options, const std::string& text) {
  constexpr std::array<std::string_view, 3> kKnown = {"map", "allocation", "bindings"};
  for (const std::string& item : items_of(text)) {
    if (item == "bindings") {
      options.report_bindings = true;
    } else if (item == "map" || item == "allocation") {
      options.passed.push_back("--display-" + item);
    } else {
      unknown_item("display", item, kKnown);
    }
  }
}

/// Applies Open MPI 5's --output.
void output(LaunchOptions& options, const std::string& text) {
  constexpr std::array<std::string_view, 6> kKnown = {
      "tag", "timestamp", "merge-stderr-to-stdout", "merge", "dir=FOLDER", "file=FOLDER"};
  for (const std::string& item : items_of(text)) {
    if (item == "tag") {
      options.tag_output = true;
    } else if (item == "timestamp") {
      options.timestamp_output = true;
    } else if (item == "merge" || item == "merge-stderr-to-stdout") {
      options.merge_stderr = true;
    } else if (item.starts_with("dir=") || item.starts_with("file=")) {
      output_folder(options, item.substr(item.find('=') + 1));
    } else {
      unknown_item("output", item, kKnown);
    }
  }
}

std::string transport(const std::string& text) {
  constexpr std::array<std::string_view, 2> kKnown = {"mpi", "tcp"};
  if (std::ranges::find(kKnown, std::string_view(text)) == kKnown.end()) {
    unknown_item("transport", text, kKnown);
  }
  return text;
}

Row refused(std::vector<std::string_view> names, const char* instead) {
  const std::string_view name = names[0];
  return {
      std::move(names), {"VALUE"}, nullptr, [name, instead](Target, Values) {
        throw ConfigError(fmt::format("[launch] {} is not taken: {}", with_dashes(name), instead));
      }};
}

std::vector<Row> make_rows() {
  constexpr const char* kHosts =
      "name the hosts with --host a:4,b:4 or --hostfile, once, where launch is started; ranks find "
      "each other through it.";
  std::vector<Row> rows = {
      {{"np", "n", "c"},
       {"N"},
       "Ranks (default: all slots)",
       [](Target t, Values v) { t.context.ranks = positive("np", v[0]); }},
      {{"npernode", "N", "nproc-per-node"},
       {"N"},
       "Ranks on each host",
       [](Target t, Values v) { ranks_per_node(t.options, v[0]); }},
      {{"nnodes"},
       {"N"},
       "Hosts that are used: the first so many of those named",
       [](Target t, Values v) { nodes(t.options, v[0]); }},
      {{"standalone"},
       {},
       "This host alone: the same as --nnodes 1",
       [](Target t, Values) { t.options.nodes = 1; }},
      {{"host", "H", "hosts"},
       {"A:SLOTS,B"},
       "Hosts, and how many ranks each takes (1 if not said)",
       [](Target t, Values v) {
         // Repeated options extend the list.
         const auto more = parse_hosts(v[0]);
         t.context.hosts.insert(t.context.hosts.end(), more.begin(), more.end());
       }},
      {{"hostfile", "machinefile", "default-hostfile"},
       {"FILE"},
       "Lines of: NAME [slots=N]",
       [](Target t, Values v) { t.context.hostfile = non_empty("hostfile", v[0]); }},
      {{"map-by"},
       {"POLICY"},
       "Where ranks go: slot, node, socket, numa, ppr:2:node, ...",
       [](Target t, Values v) {
         check_policy("map-by", v[0]);
         t.options.map_by = v[0];
       }},
      {{"rank-by"},
       {"POLICY"},
       "How ranks are numbered",
       [](Target t, Values v) {
         check_policy("rank-by", v[0]);
         t.options.rank_by = v[0];
       }},
      {{"bind-to"},
       {"POLICY"},
       "What ranks are bound to: none (default), core, socket, numa, ...",
       [](Target t, Values v) {
         check_policy("bind-to", v[0]);
         t.options.bind_to = v[0];
       }},
      {{"oversubscribe"},
       {},
       "More ranks than slots are no error",
       [](Target t, Values) { t.options.oversubscribe = true; }},
      {{"report-bindings"},
       {},
       "Say what each rank is bound to",
       [](Target t, Values) { t.options.report_bindings = true; }},
      {{"x"},
       {"NAME[=VALUE]"},
       "A variable for the ranks. LOCKSTEP_* are passed on without",
       [](Target t, Values v) {
         LS_CHECK(!v[0].empty() && v[0][0] != '=', ConfigError,
                  "[launch] -x needs NAME or NAME=VALUE: got {:?}.", v[0]);
         t.context.variables.push_back(v[0]);
       }},
      {{"transport"},
       {"mpi|tcp"},
       "What connects ranks; with tcp, those of this host are started without mpirun",
       [](Target t, Values v) { t.options.transport = transport(v[0]); }},
      {{"wdir", "wd"},
       {"FOLDER"},
       "Folder that ranks start in",
       [](Target t, Values v) { t.context.working_folder = non_empty("wdir", v[0]); }},
      {{"output-filename", "log-dir"},
       {"FOLDER"},
       "Also write each rank's output to FOLDER/1/rank.N/stdout and stderr; FOLDER:nocopy: only "
       "there",
       [](Target t, Values v) { output_folder(t.options, v[0]); }},
      {{"tee", "t"},
       {"STREAMS"},
       "With files, what the terminal shows: 1 stdout, 2 stderr, 3 both",
       [](Target t, Values v) {
         tee(t.options, v[0]);
         t.tees = true;
       }},
      {{"tag-output"},
       {},
       "Put [1,RANK]<stdout>: before each line",
       [](Target t, Values) { t.options.tag_output = true; }},
      {{"timestamp-output"},
       {},
       "Put the time before each line",
       [](Target t, Values) { t.options.timestamp_output = true; }},
      {{"merge-stderr-to-stdout"},
       {},
       "One stream of both",
       [](Target t, Values) { t.options.merge_stderr = true; }},
      {{"timeout"},
       {"TIME"},
       "End the job after so long; exit status 110",
       [](Target t, Values v) { t.options.timeout_seconds = seconds_of("timeout", v[0]); }},
      {{"max-restarts"},
       {"N"},
       "Start again after a failure, up to so often without progress",
       [](Target t, Values v) { t.options.max_restarts = positive("max-restarts", v[0], 0); }},
      {{"restart-delay", "restart-backoff"},
       {"TIME"},
       "Wait before the first restart, doubled each time up to a minute (default 1)",
       [](Target t, Values v) {
         t.options.restart_delay_seconds = seconds_of("restart-delay", v[0]);
       }},
      {{"min-ranks"},
       {"M"},
       "Restart on fewer ranks, down to M, without those or hosts that fail again and again",
       [](Target t, Values v) { t.options.min_ranks = positive("min-ranks", v[0]); }},
      {{"elastic"},
       {},
       "Train on without ranks that are lost, down to --min-ranks (default 1), with --transport "
       "tcp",
       [](Target t, Values) { t.options.elastic = true; }},
      {{"max-ranks"},
       {"N"},
       "With --elastic: other processes may join, up to N ranks (default -np); ranks that are lost "
       "are started again to join by --max-restarts",
       [](Target t, Values v) { t.options.max_ranks = positive("max-ranks", v[0]); }},
      {{"grace"},
       {"TIME"},
       "Time for saving after a signal, then ranks are ended (default 60)",
       [](Target t, Values v) { t.options.grace_seconds = seconds_of("grace", v[0]); }},
      {{"mca"},
       {"NAME", "VALUE"},
       "A parameter of Open MPI",
       [](Target t, Values v) { t.options.mca.emplace_back(v[0], v[1]); }},
      {{"prefix"},
       {"FOLDER"},
       "Where Open MPI lies on other hosts",
       [](Target t, Values v) { t.options.prefix = non_empty("prefix", v[0]); }},
      {{"allow-run-as-root"},
       {},
       "Let mpirun run as root",
       [](Target t, Values) { t.options.allow_run_as_root = true; }},
      {{"display"},
       {"WHAT"},
       "Print map, allocation or bindings, with commas between them",
       [](Target t, Values v) { display(t.options, v[0]); }},
      {{"output"},
       {"HOW"},
       "tag, timestamp, merge, dir=FOLDER, with commas between them: as the options above",
       [](Target t, Values v) { output(t.options, v[0]); }},
      {{"quiet", "q"},
       {},
       "Leave out notes of launch and of mpirun",
       [](Target t, Values) { t.options.quiet = true; }},
      {{"verbose", "v"},
       {},
       "Print what is started, as --dry-run does, and start it",
       [](Target t, Values) { t.options.verbose = true; }},
      passed({"cpu-set", "cpu-list"}, "LIST", "Processors that ranks may use: 0-3,8"),
      passed({"tune"}, "FILE", "File with MCA parameters and variables for Open MPI"),
      without_effect({"role"}, "NAME", "torchrun's name for the ranks; has no effect"),
      without_effect({"monitor-interval"}, "SECONDS",
                     "torchrun's; has no effect: launch sees at once how a rank ends"),
      without_effect({"start-method"}, "METHOD",
                     "torchrun's: spawn, fork or forkserver; has no effect: mpirun starts ranks",
                     {"spawn", "fork", "forkserver"}),
      {{"no-python"},
       {},
       "torchrun's; has no effect: a program is started as it is named",
       [](Target, Values) {}},
      passed({"use-hwthread-cpus"}, "Slots are hardware threads"),
      passed({"display-map"}, "Print where ranks go"),
      passed({"display-allocation"}, "Print hosts and slots"),
      {{"dry-run"},
       {},
       "Print what would be started",
       [](Target t, Values) { t.options.dry_run = true; }},
      {{"exec"},
       {},
       "Become mpirun instead of supervising it",
       [](Target t, Values) { t.options.exec = true; }},
      {{"help", "h"}, {}, "Print this", [](Target t, Values) { t.options.help = true; }},
      refused({"rdzv-backend"}, kHosts),
      refused({"rdzv-endpoint"}, kHosts),
      refused({"rdzv-id"}, kHosts),
      refused({"rdzv-conf"}, kHosts),
      refused({"master-addr"}, kHosts),
      refused({"master-port"}, kHosts),
      refused({"node-rank"}, kHosts),
      refused({"app"}, "write its lines on the command line, with \":\" between them."),
      refused({"rankfile", "rf"}, "use --map-by, or --exec with mpirun itself."),
      refused({"m", "module"}, "name the program: python3 -m MODULE."),
      refused({"redirects", "r"}, "use --log-dir FOLDER:nocopy, or --log-dir and --tee."),
  };
  return rows;
}

constexpr std::array<std::string_view, 11> kObjects = {"slot",    "hwthread", "core",    "l1cache",
                                                       "l2cache", "l3cache",  "package", "socket",
                                                       "numa",    "board",    "node"};

}  // namespace

const std::vector<LaunchOptionRow>& launch_option_rows() {
  static const std::vector<LaunchOptionRow> kRows = make_rows();
  return kRows;
}

void check_policy(const std::string& option, const std::string& text) {
  std::vector<std::string_view> known(kObjects.begin(), kObjects.end());
  if (option == "bind-to") {
    std::erase(known, "slot");
    std::erase(known, "node");
    known.emplace_back("none");
    known.emplace_back("cpu-list");
  }
  if (option == "map-by") {
    for (const char* more : {"ppr", "seq", "dist"}) known.emplace_back(more);
  }
  std::string word = text.substr(0, text.find(':'));
  std::ranges::transform(word, word.begin(), [](unsigned char c) { return std::tolower(c); });
  // ":OVERSUBSCRIBE" alone changes the default policy.
  if (word.empty() && text.size() > 1 && option != "rank-by") return;
  if (std::ranges::find(known, std::string_view(word)) != known.end()) return;
  const std::optional<std::string_view> meant = nearest(word, known);
  throw ConfigError(fmt::format("[launch] --{} {:?} is no policy: expected one of {}.{}", option,
                                text, fmt::join(known, ", "),
                                meant ? fmt::format(" Did you mean {}?", *meant) : ""));
}

std::vector<LaunchHost> parse_hosts(const std::string& text) {
  std::vector<LaunchHost> hosts;
  for (size_t begin = 0; begin <= text.size();) {
    const size_t end = std::min(text.find(',', begin), text.size());
    const std::string part = text.substr(begin, end - begin);
    const size_t colon = part.find(':');
    LaunchHost host{part.substr(0, colon), 1};
    if (colon != part.npos) host.slots = positive("host", part.substr(colon + 1));
    LS_CHECK(!host.name.empty(), ConfigError,
             "[launch] --host {:?} has an empty name: expected NAME or NAME:SLOTS, with commas.",
             text);
    const auto known = std::ranges::find(hosts, host.name, &LaunchHost::name);
    if (known == hosts.end()) {
      hosts.push_back(host);
    } else {
      known->slots += host.slots;
    }
    begin = end + 1;
  }
  return hosts;
}

}  // namespace lockstep::launcher

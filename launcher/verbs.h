#pragma once

#include <string>
#include <vector>

/// The program's verbs. Each function adds one verb. A verb throws lockstep::Error on failure,
/// which main turns into a message and an exit status, or ExitStatus(status) after it has printed
/// the reason itself.
namespace lockstep::launcher {

class Verb;

/// `command_line` goes into the run's environment.json.
void add_train(const Verb& app, std::vector<std::string> command_line);
/// `arguments` are those after the verb.
void add_launch(const Verb& app, std::vector<std::string> arguments);
void add_init(const Verb& app);
void add_sample(const Verb& app);
void add_eval(const Verb& app);
void add_cache(const Verb& app);
void add_checkpoint(const Verb& app);
void add_plan(const Verb& app);
void add_graph(const Verb& app);
void add_bench(const Verb& app);
void add_stress(const Verb& app);
void add_ops(const Verb& app);
void add_data(const Verb& app);
void add_compare(const Verb& app);
void add_coordinate_check(const Verb& app);
void add_bisect(const Verb& app);
void add_plot(const Verb& app);
void add_report(const Verb& app);
void add_watch(const Verb& app);
void add_trace(const Verb& app);
void add_profile(const Verb& app);
void add_config(const Verb& app);
void add_completion(const Verb& app);
void add_doctor(const Verb& app);

}  // namespace lockstep::launcher

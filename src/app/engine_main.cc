#include "app/engine_main.h"

#include <c10/util/Exception.h>
#include <poll.h>
#include <unistd.h>

#include <iostream>

#include "app/commands/commands.h"
#include "app/flags/flags.h"
#include "app/machine/bus_errors.h"
#include "app/machine/huge_pages.h"
#include "app/machine/launched.h"
#include "app/print/failure.h"
#include "app/print/standard_output.h"
#include "base/cpu.h"
#include "base/error.h"
#include "comm/fate.h"

namespace braid {
namespace {

int show(const ShowText& text) {
  if (!is_first_rank()) return text.was_asked_for ? kSuccess : kBadInput;
  if (text.was_asked_for) {
    print(text.text);
    return kSuccess;
  }
  std::cerr << text.text;
  return kBadInput;
}

// All ranks of a launch get the same command line: only the first one reports errors in it.
CommandLine read_command_line(int argc, char** argv) {
  try {
    auto line = parse_command_line(argc, argv);
    if (!std::holds_alternative<ShowText>(line)) read_cpu();  // refuses an invalid BRAID_ISA
    return line;
  } catch (const InputError& e) {
    if (is_first_rank()) throw;
    throw PeerRefused(e.what());
  }
}

// `is_verbose` is set as soon as it is known: later error reports depend on it.
int run(int argc, char** argv, bool& is_verbose) {
  const auto began = PhaseLog::Clock::now();
  const auto line = read_command_line(argc, argv);
  if (const auto* const text = std::get_if<ShowText>(&line)) return show(*text);
  if (const auto* const flags = std::get_if<InfoFlags>(&line)) return info(*flags);
  if (const auto* const flags = std::get_if<VerifyFlags>(&line)) return verify_layout(*flags);
  if (const auto* const flags = std::get_if<ConvertFlags>(&line)) return convert_model(*flags);
  if (const auto* const flags = std::get_if<PlanFlags>(&line)) return plan(*flags);
  if (const auto* const flags = std::get_if<BenchFlags>(&line)) return bench_transformer(*flags);
  if (const auto* const flags = std::get_if<ServeFlags>(&line)) return serve_pictures(*flags);
  if (const auto* const flags = std::get_if<PullFlags>(&line)) return pull_model(*flags);
  if (const auto* const flags = std::get_if<ModelsFlags>(&line)) return list_models(*flags);
  const auto& flags = std::get<GenerateFlags>(line);
  is_verbose = flags.verbosity == Verbosity::kVerbose;
  return generate(flags, began);
}

// A reader of standard error that has stalled does not keep the program from ending.
void complain(const std::string& text) {
  constexpr int kPatience = 2000;  // milliseconds
  pollfd end{.fd = STDERR_FILENO, .events = POLLOUT, .revents = 0};
  if (::poll(&end, 1, kPatience) != 0) std::cerr << text;
}

// The first rank speaks for all ranks, except those that never reached it.
int run_or_complain(int argc, char** argv) {
  bool is_verbose = false;
  try {
    return run(argc, argv, is_verbose);
  } catch (...) {
    const auto failure = current_failure(argc > 1 ? argv[1] : "");
    if (failure.is_told_by_first_rank && !name_of_rank().empty()) {
      let_first_rank_end();
      return failure.exit_code;
    }
    auto text = text_of("braid: ", name_of_rank(), failure.sentence, "\n");
    if (is_verbose && !failure.details.empty()) text += failure.details + "\n";
    complain(text);
    return failure.exit_code;
  }
}

}  // namespace

int engine_main(int argc, char** argv) {
  take_huge_pages();
  protect_standard_files();
  explain_bus_errors();
  return run_or_complain(argc, argv);
}

}  // namespace braid

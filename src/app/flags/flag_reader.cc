#include "app/flags/flag_reader.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <numeric>
#include <span>

#include "app/flags/flag_values.h"
#include "app/words/readable.h"
#include "base/error.h"

namespace braid {
namespace {

constexpr int kHelpColumn = 28;
constexpr std::size_t kHelpWidth = 66;  // characters after that column

// "-n,--num-images" -> "--num-images"; "--pp,--layer-split" -> both, the usual one first
std::vector<std::string> long_names(const std::string& names) {
  auto all = split_at_commas(names);
  std::erase_if(all, [](const std::string& name) { return !name.starts_with("--"); });
  return all;
}

// How complaints call a flag: "--pp or --layer-split", as the parser keeps neither spelling.
std::string words_of_names(const std::vector<std::string>& names) {
  std::string words;
  for (const auto& name : names) words += (words.empty() ? "" : " or ") + name;
  return words;
}

// Insertions, deletions and substitutions between two words (Levenshtein, 1966).
std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t(0));
  for (std::size_t i = 0; i < a.size(); ++i) {
    auto diagonal = std::exchange(row[0], i + 1);
    for (std::size_t j = 0; j < b.size(); ++j) {
      const auto substituted = diagonal + (a[i] == b[j] ? 0 : 1);
      diagonal = row[j + 1];
      row[j + 1] = std::min({row[j] + 1, row[j + 1] + 1, substituted});
    }
  }
  return row.back();
}

// " (did you mean --steps?)" if the command has a flag similar to `flag`, but not the same.
std::string suggestion(const CLI::App& command, std::string_view flag) {
  flag = flag.substr(0, flag.find('='));
  for (const auto* const option : command.get_options())
    for (const auto& name : option->get_lnames()) {
      const auto distance = edit_distance(flag, "--" + name);
      if (distance > 0 && distance <= 2) return " (did you mean --" + name + "?)";
    }
  return "";
}

bool has_flag(const CLI::App& command, const std::string& argument) {
  return argument.starts_with('-') &&
         command.get_option_no_throw(argument.substr(0, argument.find('='))) != nullptr;
}

// What to do with several words where a command takes one or none.
std::string advice_on_words(const std::string& command) {
  if (command == "generate")
    return "a prompt of several words goes in quotes, and a flag stands before each of its values";
  if (command == "pull") return "pull takes one name: give each its own command";
  if (command == "info") return "info takes one file: give each its own command";
  return "braid " + command + " takes flags alone: braid " + command + " --help lists them";
}

enum class StandsAfterMark { kNo, kYes };  // after "--", where nothing is a flag

[[noreturn]] void refuse_argument(const CLI::App& command, const std::string& argument,
                                  StandsAfterMark place) {
  const bool is_flag = argument.starts_with('-');
  const bool is_late = place == StandsAfterMark::kYes || has_flag(command, argument);
  require(!is_flag || is_late, "unknown flag ", in_quotes(argument), suggestion(command, argument),
          ": braid ", command.get_name(), " --help lists them");
  throw InputError(
      text_of("unexpected argument ", in_quotes(argument), ": ",
              is_flag ? "flags stand before --" : advice_on_words(command.get_name())));
}

// "help" is "--help", "help COMMAND" is "COMMAND --help".
std::vector<std::string> with_help_flag(const CLI::App& app, std::vector<std::string> arguments) {
  if (arguments.empty() || arguments.front() != "help") return arguments;
  arguments.erase(arguments.begin());
  if (arguments.empty()) return {"--help"};
  const auto is_meant = [&](const CLI::App* command) {
    return command->get_name() == arguments.front();
  };
  if (!app.get_subcommands(is_meant).empty()) arguments.insert(arguments.begin() + 1, "--help");
  return arguments;
}

// CLI11 reads the next argument as the value of `--flag=`; here the value is empty.
std::vector<std::string> with_empty_values(const CLI::App& app, int argc, const char* const* argv) {
  std::vector<std::string> arguments;
  bool flags_may_follow = true;
  for (int i = 1; i < argc; ++i) {
    const std::string argument = argv[i];
    flags_may_follow = flags_may_follow && argument != "--";
    const bool is_empty_value =
        flags_may_follow && argument.starts_with("--") && argument.find('=') == argument.size() - 1;
    arguments.push_back(is_empty_value ? argument.substr(0, argument.size() - 1) : argument);
    if (is_empty_value) arguments.emplace_back();
  }
  arguments = with_help_flag(app, std::move(arguments));
  std::reverse(arguments.begin(), arguments.end());  // the order CLI11 expects
  return arguments;
}

// Breaks lines that grew too long, such as lists of names, between two words. What is left of one
// begins the next.
std::string wrapped(std::string help) {
  for (std::size_t line = 0; line < help.size();) {
    const auto end = std::min(help.find('\n', line), help.size());
    const auto space = end - line > kHelpWidth ? help.rfind(' ', line + kHelpWidth) : help.npos;
    const bool is_broken = space != help.npos && space > line;
    if (is_broken && end < help.size()) help[end] = ' ';
    if (is_broken) help[space] = '\n';
    line = (is_broken ? space : end) + 1;
  }
  return help;
}

[[noreturn]] void refuse_command(const CLI::App& app, const std::string& first) {
  require(!first.starts_with('-'), "unknown flag ", in_quotes(first), suggestion(app, first),
          ": a command comes first, as in braid generate \"a red circle\"");
  throw InputError(text_of(
      "unknown command ", in_quotes(first),
      ": the commands are generate, serve, verify, bench, plan, convert, info, "
      "pull and models, as in braid generate \"a red circle\"; braid help COMMAND tells more"));
}

bool begins_with_command(const CLI::App& app, const char* const* argv) {
  const auto commands = app.get_subcommands();
  return !commands.empty() && commands.front()->get_name() == argv[1];
}

// The first argument after the mark; CLI11 also takes "++" for the end of a command.
std::string first_after_mark(std::span<const char* const> arguments) {
  const auto is_mark = [](std::string_view argument) {
    return argument == "--" || argument == "++";
  };
  const auto mark = std::find_if(arguments.begin(), arguments.end(), is_mark);
  return arguments.end() - mark > 1 ? *(mark + 1) : "";
}

// CLI11 hands the program what follows "--" where a command takes no more words, and the program
// would take its own flags there. A line that begins with a command has them nowhere else.
ShowText text_to_show(const CLI::App& app, std::span<const char* const> arguments,
                      std::string text) {
  const auto commands = app.get_subcommands();
  const std::string_view first = arguments.size() > 1 ? arguments[1] : "--help";
  if (commands.empty() && first != "help" && !first.starts_with('-'))
    refuse_command(app, std::string(first));
  if (!commands.empty() && commands.front()->get_help_ptr()->count() > 0) {
    text = app.help();
  } else if (begins_with_command(app, arguments.data())) {
    refuse_argument(*commands.front(), first_after_mark(arguments), StandsAfterMark::kYes);
  }
  return {.text = std::move(text), .was_asked_for = true};
}

}  // namespace

FlagReader::FlagReader(CLI::App& command) : command_(command) {
  command.allow_extras();
  command.get_formatter()->column_width(kHelpColumn);
  command.get_help_ptr()->description("Print this help");
}

std::string FlagReader::know(const std::string& names, const Read& read) {
  const auto all = long_names(names);
  for (const auto& name : all) known_[name] = {.usual = all.front(), .read = read};
  return all.front();
}

void FlagReader::text(const std::string& names, const std::string& value, const std::string& group,
                      const std::string& help, Read read) {
  const auto flag = know(names, read);
  const auto take = [this, read, flag,
                     said = words_of_names(long_names(names))](const std::string& text) {
    given_.insert(flag);
    reads_.emplace_back([=] { read(said, text); });
  };
  command_.add_option_function<std::string>(names, take, wrapped(help))
      ->option_text(value)
      ->group(group)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
}

void FlagReader::texts(const std::string& names, const std::string& value, const std::string& group,
                       const std::string& help, Read read) {
  const auto take = [this, read, flag = know(names, read)](const std::vector<std::string>& all) {
    for (const auto& text : all) reads_.emplace_back([=] { read(flag, text); });
  };
  command_.add_option_function<std::vector<std::string>>(names, take, help)
      ->option_text(value)
      ->group(group)
      ->expected(1)
      ->allow_extra_args(false)  // the prompt may follow
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
}

void FlagReader::path(const std::string& names, const std::string& value, const std::string& group,
                      const std::string& help, std::filesystem::path& path) {
  text(names, value, group, help, [&path](const std::string& flag, const std::string& text) {
    require(!text.empty(), flag, " should be a path, it is empty");
    path = text;
  });
}

void FlagReader::flag(const std::string& names, const std::string& group, const std::string& help,
                      bool& flag) {
  command_.add_flag(names, flag, help)->group(group);
}

void FlagReader::action(const std::string& names, const std::string& group, const std::string& help,
                        std::function<void()> act) {
  command_.add_flag_callback(names, std::move(act), help)->group(group);
}

void FlagReader::positional(const std::string& name, const std::string& help,
                            std::optional<std::string>& text) {
  command_
      .add_option_function<std::string>(
          name, [&text](const std::string& value) { text = value; }, help)
      ->option_text(" ");
}

void FlagReader::positional(const std::string& name, const std::string& help, std::string& text) {
  command_
      .add_option_function<std::string>(
          name, [&text](const std::string& value) { text = value; }, help)
      ->option_text(" ");
}

void FlagReader::finish() {
  auto place = StandsAfterMark::kNo;
  for (const auto& extra : command_.remaining()) {
    if (extra != "--") refuse_argument(command_, extra, place);
    place = StandsAfterMark::kYes;
  }
  for (const auto& read : reads_) read();
}

void FlagReader::read_also(const std::string& flag, const std::string& said,
                           const std::string& text) {
  const auto it = known_.find(flag);
  require(it != known_.end(), said, ": braid ", command_.get_name(), " has no flag ",
          in_quotes(flag), " with a value", suggestion(command_, flag));
  it->second.read(said, text);
}

std::string FlagReader::usual_name(const std::string& flag) const {
  const auto it = known_.find(flag);
  return it == known_.end() ? flag : it->second.usual;
}

std::optional<ShowText> parse_with(CLI::App& app, int argc, const char* const* argv) {
  app.allow_extras();
  app.require_subcommand(0, 1);  // otherwise a prompt could be taken for a second command
  const std::span arguments(argv, std::size_t(argc));
  try {
    app.parse(with_empty_values(app, argc, argv));
  } catch (const CLI::CallForHelp&) {
    return text_to_show(app, arguments, app.help());
  } catch (const CLI::CallForVersion& version) {
    return text_to_show(app, arguments, std::string(version.what()) + "\n");
  } catch (const CLI::ArgumentMismatch& error) {
    const std::string what = error.what();
    throw InputError(what.substr(0, what.find(':')) + " needs a value");
  } catch (const CLI::ParseError& error) {
    throw InputError(one_line(error.what()));
  }
  const auto extras = app.remaining();
  const auto commands = app.get_subcommands();
  if (extras.empty() && commands.empty())
    return ShowText{.text = app.help(), .was_asked_for = false};
  if (extras.empty()) return {};
  if (!begins_with_command(app, argv)) refuse_command(app, extras.front());
  // CLI11 leaves to the program what follows "--" and its command has no place for.
  refuse_argument(*commands.front(), extras.front(), StandsAfterMark::kYes);
}

}  // namespace braid

// What commands advise: only flags that they have themselves.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <new>
#include <regex>

#include "app/commands/served_models.h"
#include "app/flags/memory_words.h"
#include "app/print/failure.h"

namespace braid::advice_test {

using testing::HasSubstr;

constexpr const char* kCommands[] = {"generate", "info", "serve", "verify",
                                     "convert",  "plan", "bench"};

CommandLine parse(std::vector<const char*> arguments) {
  arguments.insert(arguments.begin(), "braid");
  return parse_command_line(int(arguments.size()), arguments.data());
}

std::string help_of(const char* command) {
  return std::get<ShowText>(parse({command, "--help"})).text;
}

std::set<std::string> matches(const std::string& text, const char* pattern) {
  const std::regex flag(pattern, std::regex::multiline);
  std::set<std::string> all;
  for (std::sregex_iterator it(text.begin(), text.end(), flag), end; it != end; ++it)
    all.insert((*it)[1]);
  return all;
}

// Flags that the text names, except in command lines of other commands.
void expect_own_flags(const char* command, std::string text) {
  auto own = matches(help_of(command), R"(^  (?:-\w,)?(--[a-z0-9-]+))");
  own.merge(matches(help_of(command), R"(^  --[a-z0-9-]+,(--[a-z0-9-]+))"));
  ASSERT_TRUE(own.contains("--help"));
  const std::regex other(std::string(R"(braid (?!)") + command + R"()\w+( +[^,;:]*)?)");
  text = std::regex_replace(text, other, "");
  for (const auto& flag : matches(text, "(--[a-z][a-z0-9-]*)"))
    EXPECT_TRUE(own.contains(flag)) << "braid " << command << " has no " << flag << ": " << text;
}

TEST(Advice, OfHelpIsAboutTheCommandsOwnFlags) {
  for (const auto* const command : kCommands) expect_own_flags(command, help_of(command));
}

TEST(Advice, OnMemoryIsAboutTheCommandsOwnFlags) {
  using Remedy = DoesNotFit::Remedy;
  const auto complain = [](const char* command, const std::vector<DoesNotFit::Help>& help) {
    expect_own_flags(command, help_sentence(DoesNotFit("", help), command));
  };
  for (const auto* const command : {"generate", "serve"}) {  // those that have a budget
    complain(command, {});
    for (const auto remedy :
         {Remedy::kFiles, Remedy::kEightBits, Remedy::kEightBitsInFiles, Remedy::kSmallPicture})
      complain(command, {{.remedy = remedy, .device_peak = 1}});
  }
  for (const auto* const command : kCommands) {
    try {
      throw std::bad_alloc();
    } catch (...) {
      expect_own_flags(command, current_failure(command).sentence);
    }
  }
}

TEST(Advice, OnMissingBudgetsIsAboutTheCommandsOwnFlags) {
  for (auto line : {std::vector{"generate", "a"}, {"serve"}, {"verify"}, {"convert"}, {"bench"}}) {
    line.insert(line.end(), {"--quantize", "auto"});
    try {
      parse(line);
      ADD_FAILURE() << line.front();
    } catch (const InputError& error) {
      EXPECT_THAT(error.what(), HasSubstr("--quantize auto"));
      expect_own_flags(line.front(), error.what());
    }
  }
}

// Clients of a server have no flags.
TEST(Advice, WithoutACommandNamesNoFlag) {
  try {
    throw std::bad_alloc();
  } catch (...) {
    EXPECT_EQ(current_failure().sentence, "out of memory: a smaller picture takes less");
  }
}

TEST(Advice, OfSmallerPicturesHelpsAServer) {
  const auto need_with = [](int max_pixels) {
    ServeFlags flags;
    flags.bounds.max_pixels = max_pixels;
    flags.options.memory.budget.host = 2'000'000'000;
    flags.models = {std::filesystem::path(BRAID_SOURCE_DIR) / "models/demo"};
    return served_models(flags).front().need.host;
  };
  EXPECT_LT(need_with(32 * 32), need_with(2048 * 2048)) << "planned for the default size";
  EXPECT_EQ(need_with(1024 * 1024), need_with(2048 * 2048));
}

}  // namespace braid::advice_test

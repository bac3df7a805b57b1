// LoRAs by name, in the terms of each API.
#include "serve/body/loras.h"

#include <gmock/gmock.h>

#include "base/foreign_file.h"
#include "base/hub_cache.h"
#include "test_server.h"

namespace braid::serve::loras_test {

using testing::HasSubstr;
using testing::Not;

class Loras : public testing::Test {
 protected:
  std::string generate(const nlohmann::json& loras) const {
    const nlohmann::json wish = {{"prompt", "a"}, {"size", "16x16"}, {"lora", loras}};
    return server_.ask("POST /v1/images/generations", "", wish.dump());
  }
  // Files and scales of the last call, "-" if it had none of its own.
  std::string applied() {
    const auto adapters = engine_.last().adapters;
    if (!adapters) return "-";
    std::string text;
    for (const auto& [file, scale] : *adapters)
      text += text_of(file.stem().string(), "=", scale, " ");
    return text;
  }

  FakeEngine engine_;
  Server server_{engine_};
};

TEST_F(Loras, ApplyBehindThoseOfAllRequests) {
  ASSERT_EQ(status_of(generate({{{"name", "ink"}, {"scale", -0.5}}, {{"name", "ink"}}})), 200);
  EXPECT_EQ(applied(), "always=2 ink=-0.5 ink=1 ");
  ASSERT_EQ(status_of(generate(nlohmann::json::array())), 200);
  EXPECT_EQ(applied(), "-") << "the pipeline's own";
}

TEST_F(Loras, AreNamedInForms) {
  std::string form;
  for (const auto& [name, text] :
       std::vector<std::pair<std::string, std::string>>{{"prompt", "a"},
                                                        {"lora[][name]", "ink"},
                                                        {"lora[][name]", "ink"},
                                                        {"lora[][scale]", "0.25"},
                                                        {"lora[][scale]", "3"}})
    form += "--xx\r\ncontent-disposition: form-data; name=\"" + name + "\"\r\n\r\n" + text + "\r\n";
  const std::string type = "content-type: multipart/form-data; boundary=xx\r\n";
  ASSERT_EQ(status_of(server_.ask("POST /v1/jobs", type, form + "--xx--")), 202);
  engine_.wait_until_called(1);
  EXPECT_EQ(applied(), "always=2 ink=0.25 ink=3 ");
  const auto as_text =
      "--xx\r\ncontent-disposition: form-data; name=prompt\r\n\r\na\r\n"
      "--xx\r\ncontent-disposition: form-data; name=lora\r\n\r\n"
      "[{\"name\": \"ink\", \"scale\": 4}]\r\n--xx--";
  ASSERT_EQ(status_of(server_.ask("POST /v1/jobs", type, as_text)), 202);
  engine_.wait_until_called(2);
  EXPECT_EQ(applied(), "always=2 ink=4 ");
}

TEST_F(Loras, AreTakenOutOfTheWebUisPrompts) {
  const auto answer = server_.ask("POST /sdapi/v1/txt2img", "",
                                  R"({"prompt": "a <lora:ink:0.5>fox<lora:ink>", "steps": 1})");
  ASSERT_EQ(status_of(answer), 200) << answer;
  EXPECT_EQ(applied(), "always=2 ink=0.5 ink=1 ");
  EXPECT_EQ(engine_.last().prompts.front(), "a fox");
  std::string twice = "<lora:ink:0.5:0.50><lora:odd:-1:-1>";
  const auto equal = take_loras(twice);
  ASSERT_EQ(equal.size(), 2u);
  EXPECT_EQ(std::pair(equal[0].scale, equal[1].scale), std::pair(0.5, -1.0));
  EXPECT_EQ(equal[1].name, "odd");
  // extensions-builtin/Lora/extra_networks_lora.py: one that is left out is 1, or that of te
  for (const auto& [tag, scale] :
       std::vector<std::pair<std::string, double>>{{"te=0.5:unet=0.5", 0.5},
                                                   {"unet=2:te=2.0", 2},
                                                   {"te=0.5", 0.5},
                                                   {"0.5:unet=0.5", 0.5},
                                                   {"unet=1", 1}}) {
    auto prompt = "<lora:ink:" + tag + ">";
    EXPECT_EQ(take_loras(prompt).front().scale, scale) << tag;
  }
  for (const std::string prompt :
       {"<lora:gone:1>", "<lora:ink:x>", "<lora:ink:1:2>", "<lora:>", "<lora:ink:1:>",
        "<lora:ink::1>", "<lora:ink:1:1:1>", "<lora:ink:te=1:unet=2>", "<lora:ink:unet=2>",
        "<lora:ink:te=>", "<lora:ink:te=x>", "<lora:ink:1:dyn=4>"}) {
    const nlohmann::json wish = {{"prompt", prompt}};
    EXPECT_EQ(status_of(server_.ask("POST /sdapi/v1/txt2img", "", wish.dump())), 400) << prompt;
  }
  std::string lycoris = "a <lyco:ink:0.5>b <lora:odd> <lyco:odd:2:2>c";  // an older extension's
  const auto both = take_loras(lycoris);
  ASSERT_EQ(both.size(), 3u);
  EXPECT_EQ(lycoris, "a b  c");
  EXPECT_EQ(std::pair(both[0].name, both[0].scale), std::pair(std::string("ink"), 0.5));
  EXPECT_EQ(std::pair(both[1].name, both[1].scale), std::pair(std::string("odd"), 1.0));
  EXPECT_EQ(std::pair(both[2].name, both[2].scale), std::pair(std::string("odd"), 2.0));
  std::string open = "a <lora:ink";
  EXPECT_TRUE(take_loras(open).empty());
  EXPECT_EQ(open, "a <lora:ink");
}

TEST_F(Loras, AreListedWithoutTheirFiles) {
  const auto list = server_.ask("GET /sdapi/v1/loras");
  EXPECT_EQ(json_of(list)[0]["name"], "ink");
  const auto capabilities = server_.ask("GET /v1/capabilities");
  EXPECT_EQ(json_of(capabilities)["loras"].size(), 2u);
  const auto own = json_of(capabilities)["adapters"];
  EXPECT_EQ(own, nlohmann::json::parse(R"([{"name": "always", "scale": 2}])"));
  const auto job =
      server_.ask("POST /v1/jobs", "", R"({"prompt": "a", "lora": [{"name": "ink"}]})");
  EXPECT_EQ(json_of(job)["request"]["lora"][1]["name"], "ink");
  for (const auto& answer : {list, job}) EXPECT_THAT(answer, Not(HasSubstr("models")));
  EXPECT_THAT(own.dump(), Not(HasSubstr("models")));
}

// What another rank lacks is told without what only its operator can do, or has.
TEST(SentencesOfLoras, LeaveOutAdviceForTheServer) {
  const std::filesystem::path file = "loras/two.safetensors";
  Backend backend;
  backend.loras = [&] { return std::map<std::string, std::filesystem::path>{{"two", file}}; };
  Request request;
  request.adapters = {{file, 1}};
  const auto advice = not_in_hub(file);
  ASSERT_THAT(advice, HasSubstr("braid pull"));
  const auto told =
      with_lora_names("rank 1: there is no adapter at " + file.string() + advice, request, backend);
  EXPECT_EQ(told.text, "rank 1: there is no adapter at the LoRA 'two'");
  EXPECT_TRUE(told.names_one);
}

// Errors that the engine finds in a file are reported to the client, who can correct them, but
// knows no paths.
TEST_F(Loras, ThatDoNotFitAreRefusedByName) {
  const auto answer = generate({{{"name", "odd"}}});
  EXPECT_EQ(status_of(answer), 400);
  EXPECT_EQ(json_of(answer)["error"]["message"], "the LoRA 'odd' does not fit this model");
  EXPECT_EQ(json_of(answer)["error"]["param"], "lora");
  for (const nlohmann::json& odd : {nlohmann::json{{"name", "ink"}, {"scale", "a"}},
                                    nlohmann::json{{"name", "ink"}, {"wieght", 1}}})
    EXPECT_EQ(json_of(generate({odd}))["error"]["param"], "lora") << odd;
  const auto job =
      json_of(server_.ask("POST /v1/jobs", "", R"({"prompt": "a", "lora": [{"name": "odd"}]})"));
  const auto path = "GET /v1/jobs/" + job["id"].get<std::string>();
  const auto events = server_.ask(path + "/events");
  EXPECT_THAT(events, HasSubstr("the LoRA 'odd' does not fit"));
  for (const auto& told : {events, server_.ask(path)}) EXPECT_THAT(told, Not(HasSubstr("/models")));
}

// Warnings come before a picture is drawn and while it is. Some are about LoRAs of all requests,
// which are nobody's fault.
TEST(LorasOfTheServer, AreToldOfWithoutTheirPaths) {
  FakeEngine engine;
  engine.adapt = [](Backend& backend) {
    backend.complete = [complete = backend.complete](const Request& request, const Hooks& hooks) {
      if (request.prompts.front() == "refused")
        throw InputError("/models/ink.safetensors cannot be read");
      hooks.warning("/models/always.safetensors holds a tensor too many");
      return complete(request, hooks);
    };
    backend.generate = [](const Request& request, const Hooks& hooks) {
      hooks.warning("/models/ink.safetensors holds a tensor too many");
      if (request.prompts.front() == "fails") throw Error("/models/always.safetensors is gone");
    };
  };
  const Server server(engine);
  const auto ask = [&](const std::string& prompt) {
    const nlohmann::json wish = {{"prompt", prompt}, {"lora", {{{"name", "ink"}}}}};
    const auto answer = server.ask("POST /v1/images/generations", "", wish.dump());
    EXPECT_THAT(answer, Not(HasSubstr("/models")));
    return json_of(answer);
  };
  EXPECT_EQ(ask("a")["warnings"], nlohmann::json({"the LoRA 'always' holds a tensor too many",
                                                  "the LoRA 'ink' holds a tensor too many"}));
  const auto refused = ask("refused")["error"];
  EXPECT_EQ(refused["message"], "the LoRA 'ink' cannot be read");
  EXPECT_EQ(refused["param"], "lora");
  const auto failed = ask("fails")["error"];
  EXPECT_EQ(failed["message"], "the LoRA 'always' is gone");
  EXPECT_TRUE(failed["param"].is_null()) << "the request names another one";
}

// The folder is looked into again when a request is about to be drawn.
TEST(LorasOfTheServer, ThatWereTakenAwayAreUnknown) {
  const auto gone = std::make_shared<std::atomic<bool>>(false);
  FakeEngine engine([gone](Backend& backend) {
    backend.loras = [gone]() -> std::map<std::string, std::filesystem::path> {
      if (*gone) return {};
      return {{"new", "loras/new.safetensors"}};
    };
    backend.complete = [gone](const Request& request, const Hooks&) -> Request {
      *gone = true;
      throw InputError(request.prompts.front());
    };
  });
  const Server server(engine);
  for (const std::string complaint :
       {"there is no adapter at loras/new.safetensors, and none of that name in /root/.cache",
        "cannot read \"loras/new.safetensors\": No such file or directory"}) {
    *gone = false;
    const nlohmann::json wish = {{"prompt", complaint}, {"lora", {{{"name", "new"}}}}};
    const auto error = json_of(server.ask("POST /v1/jobs", "", wish.dump()))["error"];
    EXPECT_EQ(error["message"], "this server has no LoRA 'new'");
    EXPECT_EQ(error["code"], "lora_not_found");
    EXPECT_EQ(error["param"], "lora");
  }
}

// Neither is a client told that its LoRA is unknown, nor where the folder is.
TEST(LorasOfTheServer, InAFolderThatCannotBeReadMayBeAskedForAgain) {
  const auto is_readable = std::make_shared<std::atomic<bool>>(false);
  FakeEngine engine([is_readable](Backend& backend) {
    backend.loras = [is_readable, files = backend.loras] {
      check(*is_readable, "cannot read /models/loras: Too many open files");
      return files();
    };
  });
  std::mutex mutex;
  std::vector<std::string> warnings;
  const Server server(engine, {}, {}, {.on_warning = [&](const std::string& sentence) {
                        const std::scoped_lock lock(mutex);
                        warnings.push_back(sentence);
                      }});
  const std::string named = R"({"prompt": "a", "size": "16x16", "lora": [{"name": "ink"}]})";
  const std::vector<std::pair<std::string, std::string>> requests = {
      {"POST /v1/images/generations", named},
      {"POST /v1/jobs", named},
      {"POST /sdapi/v1/txt2img", R"({"prompt": "a <lora:ink:1>"})"},
      {"GET /sdapi/v1/loras", ""},
      {"GET /v1/capabilities", ""}};
  for (const auto& [line, body] : requests) {
    const auto answer = server.ask(line, "", body);
    EXPECT_EQ(status_of(answer), 503) << line;
    EXPECT_THAT(answer, HasSubstr("retry-after: "));
    EXPECT_THAT(answer, Not(HasSubstr("/models")));
    EXPECT_EQ(json_of(answer)["error"]["code"], "loras_unreadable");
  }
  EXPECT_EQ(status_of(server.ask("POST /v1/images/generations", "", R"({"prompt": "a"})")), 200)
      << "it needs none";
  *is_readable = true;
  EXPECT_EQ(status_of(server.ask("POST /v1/images/generations", "", named)), 200);
  const std::scoped_lock lock(mutex);
  EXPECT_EQ(std::ranges::count(warnings, "cannot read /models/loras: Too many open files"),
            int(requests.size()));
}

// The folder fails when the picture does: the client hears of the picture.
TEST(LorasOfTheServer, InAFolderThatBecomesUnreadableAreToldOfByTheirFiles) {
  const auto is_readable = std::make_shared<std::atomic<bool>>(true);
  FakeEngine engine([is_readable](Backend& backend) {
    backend.loras = [is_readable, files = backend.loras] {
      if (!*is_readable) throw std::runtime_error("cannot read /models: Input/output error");
      return files();
    };
    backend.generate = [is_readable](const Request& request, const Hooks& hooks) {
      if (request.prompts.front() == "works") return;
      *is_readable = false;
      hooks.warning("/models/ink.safetensors holds a tensor too many");
      throw InputError("cannot read /models/ink.safetensors: Input/output error");
    };
  });
  const Server server(engine);
  const auto ask = [&](const std::string& prompt) {
    const nlohmann::json wish = {{"prompt", prompt}, {"lora", {{{"name", "ink"}}}}};
    return server.ask("POST /v1/images/generations", "", wish.dump());
  };
  const auto failed = ask("fails");
  EXPECT_EQ(json_of(failed)["error"]["message"], "cannot read the LoRA 'ink': Input/output error");
  EXPECT_THAT(failed, Not(HasSubstr("/models")));
  *is_readable = true;
  EXPECT_EQ(status_of(ask("works")), 200) << "the server goes on";
}

TEST(LorasOfTheServer, AreNotQuotedToClients) {
  FakeEngine engine([](Backend& backend) {
    backend.complete = [](const Request&, const Hooks&) -> Request {
      const std::string text = "the secret of another folder";
      throw InputError("/models/ink.safetensors is not a safetensors file: it " +
                       foreign_format(std::as_bytes(std::span(text))));
    };
  });
  const Server server(engine);
  const auto answer =
      server.ask("POST /v1/jobs", "", R"({"prompt": "a", "lora": [{"name": "ink"}]})");
  EXPECT_EQ(json_of(answer)["error"]["message"],
            "the LoRA 'ink' is not a safetensors file: it is text, not weights");
  EXPECT_EQ(json_of(answer)["error"]["param"], "lora");
}

}  // namespace braid::serve::loras_test

// The answers to each kind of client, over real sockets.
#include <gmock/gmock.h>

#include <map>
#include <regex>
#include <set>

#include "serve/body/fields.h"
#include "serve/page/page_files.h"
#include "test_server.h"

namespace braid::serve::api_test {

using testing::HasSubstr;
using testing::Not;

const std::string kSmall = R"({"prompt": "a", "size": "16x16", "seed": 5})";

TEST(Api, AnswersOpenAisClients) {
  FakeEngine engine;
  const Server server(engine);
  const auto answer = server.ask("POST /v1/images/generations", "", kSmall);
  ASSERT_EQ(status_of(answer), 200) << answer;
  const auto json = json_of(answer);
  const auto png = bytes_of_base64(json["data"][0]["b64_json"].get<std::string>(), "");
  EXPECT_EQ(decode_png(png, "").rgb.front(), 5);
  EXPECT_EQ(json["data"][0]["seed"], 5);
  EXPECT_EQ(json["size"], "16x16");
  EXPECT_EQ(json_of(server.ask("GET /v1/models"))["data"][0]["id"], "demo");
}

TEST(Api, AnswersWithAddressesAsTheClientReachesThem) {
  FakeEngine engine;
  const Server server(engine);
  const auto address = [&](const std::string& headers) -> std::string {
    const auto answer =
        server.ask("POST /v1/images/generations", headers,
                   R"({"prompt": "a", "size": "16x16", "seed": 5, "response_format": "url"})");
    return json_of(answer)["data"][0]["url"];
  };
  const std::string base = "http://localhost:8188";
  const auto url = address("host: localhost:8188\r\n");
  ASSERT_THAT(url, testing::StartsWith(base + "/v1/jobs/"));
  const auto answer = server.ask("GET " + url.substr(base.size()));
  EXPECT_EQ(decode_png(answer.substr(answer.find("\r\n\r\n") + 4), "").rgb.front(), 5);
  EXPECT_THAT(address("host: localhost\r\nx-forwarded-proto: https\r\n"),
              testing::StartsWith("https://localhost/v1/jobs/"));
}

TEST(Api, WritesOtherFormsOfFiles) {
  FakeEngine engine;
  const Server server(engine);
  for (const auto& [format, begin] : {std::pair("jpeg", "\xff\xd8\xff"), {"webp", "RIFF"}}) {
    const nlohmann::json wish = {
        {"prompt", "a"}, {"size", "16x16"}, {"output_format", format}, {"output_compression", 90}};
    const auto json = json_of(server.ask("POST /v1/images/generations", "", wish.dump()));
    EXPECT_EQ(json["output_format"], format);
    const auto file = bytes_of_base64(json["data"][0]["b64_json"].get<std::string>(), "");
    EXPECT_TRUE(file.starts_with(begin)) << format;
    const std::string id = json_of(server.ask("POST /v1/jobs", "", wish.dump()))["id"];
    server.ask("GET /v1/jobs/" + id + "/events");
    EXPECT_THAT(server.ask("GET /v1/jobs/" + id + "/pictures/0"),
                HasSubstr(std::string("Content-Type: image/") + format));
  }
  EXPECT_EQ(
      status_of(server.ask("POST /v1/jobs", "", R"({"prompt": "a", "output_format": "gif"})")),
      400);
}

TEST(Api, RefusesPicturesThatTheFormCannotHoldBeforeTheyAreDrawn) {
  FakeEngine engine;
  engine.adapt = [](Backend& backend) { backend.info.largest_side = 1 << 14; };
  const Server server(engine);
  const auto wide = [&](const char* format) {
    const nlohmann::json wish = {{"prompt", "a"}, {"size", "16384x16"}, {"output_format", format}};
    return server.ask("POST /v1/jobs", "", wish.dump());
  };
  EXPECT_THAT(wide("webp"), HasSubstr("the sides of a WebP should lie between 1 and 16383, they "
                                      "are 16384x16"));
  EXPECT_EQ(json_of(wide("webp"))["error"]["param"], "size");
  EXPECT_EQ(status_of(wide("jpeg")), 202);
}

TEST(Api, ChoosesAmongModelsByName) {
  FakeEngine engine(FakeEngine::Steps::kAtOnce, 2);
  const Server server(engine);
  EXPECT_EQ(json_of(server.ask("GET /v1/models"))["data"][1]["id"], "demo1");
  EXPECT_EQ(status_of(server.ask("GET /v1/models/demo1")), 200);
  EXPECT_EQ(status_of(server.ask("GET /v1/models/demo2")), 404);
  EXPECT_EQ(json_of(server.ask("GET /v1/capabilities?model=demo1"))["model"], "demo1");
  const auto job = [&](const std::string& json) {
    return json_of(server.ask("POST /v1/jobs", "", json))["model"];
  };
  EXPECT_EQ(job(R"({"prompt": "a"})"), "demo");
  EXPECT_EQ(job(R"({"prompt": "a", "model": "demo1"})"), "demo1");
  const auto refused = server.ask("POST /v1/jobs", "", R"({"prompt": "a", "model": "demo2"})");
  EXPECT_EQ(status_of(refused), 404);
  EXPECT_THAT(refused, HasSubstr("'demo', 'demo1'"));
  const auto web_ui_model = [&](const std::string& json) {
    const auto answer = json_of(server.ask("POST /sdapi/v1/txt2img", "", json));
    return nlohmann::json::parse(answer["info"].get<std::string>())["sd_model_name"];
  };
  const std::string other = R"("override_settings": {"sd_model_checkpoint": "demo1"})";
  EXPECT_EQ(web_ui_model("{" + other + "}"), "demo1");
  EXPECT_EQ(web_ui_model("{}"), "demo");
  server.ask("POST /sdapi/v1/options", "", R"({"sd_model_checkpoint": "demo1"})");
  EXPECT_EQ(web_ui_model("{}"), "demo1");
  EXPECT_EQ(json_of(server.ask("GET /sdapi/v1/options"))["sd_model_checkpoint"], "demo1");
}

TEST(Api, AnswersErrorsInOpenAisForm) {
  FakeEngine engine;
  const Server server(engine);
  const auto answer = server.ask("POST /v1/images/generations", "", R"({"prompt": "a", "n": 11})");
  EXPECT_EQ(status_of(answer), 400);
  EXPECT_THAT(answer, HasSubstr("x-request-id: "));
  const auto error = json_of(answer)["error"];
  EXPECT_EQ(error["param"], "n");
  EXPECT_EQ(error["type"], "invalid_request_error");
  EXPECT_EQ(status_of(server.ask("GET /nothing")), 404);
  EXPECT_EQ(status_of(server.ask("DELETE /v1/models")), 405);
  EXPECT_THAT(server.ask("DELETE /v1/models"), HasSubstr("allow: GET, HEAD\r\n"));
  EXPECT_EQ(status_of(server.ask("POST /v1/images/generations", "", R"({"prompt": "fails"})")),
            500);
}

TEST(Api, StreamsPartialPicturesAndTheWholeOne) {
  FakeEngine engine;
  const Server server(engine);
  const auto answer =
      server.ask("POST /v1/images/generations", "",
                 R"({"prompt": "a", "size": "16x16", "stream": true, "partial_images": 2})");
  EXPECT_THAT(answer, HasSubstr("content-type: text/event-stream"));
  EXPECT_THAT(answer, HasSubstr("event: image_generation.completed"));
  EXPECT_THAT(answer, HasSubstr("\"b64_json\""));
}

// They come after a third and two thirds of the steps, counted anew for each picture.
TEST(Api, SpreadsPartialPicturesOverTheSteps) {
  FakeEngine engine(FakeEngine::Steps::kHeld);
  const Server server(engine);
  RawClient client(server.port());
  client.send(Server::request_text("POST /v1/images/generations", "", R"({"prompt": "a", "n": 2,
      "size": "16x16", "steps": 6, "stream": true, "partial_images": 2})"));
  for (int picture = 0; picture < 2; ++picture) {
    client.forget();
    for (int step = 1; step < 6; ++step) {
      engine.release(1);
      ASSERT_TRUE(client.read_until(text_of("\"step\":", step, ",")));
      const auto& all = client.received();
      EXPECT_EQ(all.find("\"partial_image_index\":0") != all.npos, step >= 2) << step;
      EXPECT_EQ(all.find("\"partial_image_index\":1") != all.npos, step >= 4) << step;
    }
    engine.release(1);
    ASSERT_TRUE(client.read_until("event: image_generation.completed"));
    ASSERT_TRUE(client.read_until("\"usage\""));
  }
  EXPECT_EQ(engine.preview_interval(), 0) << "each step may be the one";
}

TEST(Api, DescribesEveryRouteAndNoOther) {
  FakeEngine engine;
  const Server server(engine);
  std::set<std::string> described, served;
  const auto description = json_of(server.ask("GET /openapi.json"));
  for (const auto& [path, methods] : description["paths"].items())
    for (const auto& [method, what] : methods.items())
      if (method != "parameters")
        described.insert(method + std::regex_replace(path, std::regex("\\{\\w+\\}"), "{}"));
  for (const auto& routes : {openai_routes(), jobs_routes(), status_routes(), sdapi_routes(),
                             sdapi_list_routes(), sdapi_extras_routes(), tokens_routes()})
    for (const auto& route : routes)
      served.insert((route.method == "GET"    ? "get"
                     : route.method == "POST" ? "post"
                                              : "delete") +
                    route.pattern);
  EXPECT_EQ(described, served);
}

TEST(Api, DescribesTheBoundOfItsPrompts) {
  FakeEngine engine;
  const Server server(engine);
  const auto description = json_of(server.ask("GET /openapi.json"));
  const auto& schemas = description["components"]["schemas"];
  const auto& tokens = description["paths"]["/v1/tokens"]["post"]["requestBody"]["content"]
                                  ["application/json"]["schema"]["properties"];
  const std::string longest(kLongestPrompt, 'a');
  for (const std::string name : {"prompt", "prompt_2", "negative_prompt"}) {
    EXPECT_EQ(tokens[name]["maxLength"], kLongestPrompt) << name;
    EXPECT_EQ(schemas["Wish"]["properties"][name]["maxLength"], kLongestPrompt) << name;
    for (const std::string line : {"POST /v1/tokens", "POST /v1/jobs"}) {
      nlohmann::json body = {{"prompt", "a"}};
      body[name] = longest;
      EXPECT_LT(status_of(server.ask(line, "", body.dump())), 300) << line << name;
      body[name] = longest + "a";
      EXPECT_EQ(status_of(server.ask(line, "", body.dump())), 400) << line << name;
    }
  }
}

// A client that fills in the documented fields never gets an unknown-field error.
TEST(Api, TakesEveryFieldThatItDescribes) {
  FakeEngine engine;
  const Server server(engine);
  const auto description = json_of(server.ask("GET /openapi.json"));
  const std::map<std::string, std::string> bodies = {{"POST /v1/images/generations", "Generation"},
                                                     {"POST /v1/images/edits", "Edit"},
                                                     {"POST /v1/jobs", "NewJob"}};
  for (const auto& [line, name] : bodies) {
    nlohmann::json body;
    const auto& schemas = description["components"]["schemas"];
    const auto fill = [&](const auto& self, const nlohmann::json& schema) -> void {
      const auto properties = schema.value("properties", nlohmann::json::object());
      for (const auto& [field, what] : properties.items()) body[field] = nullptr;
      const auto parts = schema.value("allOf", nlohmann::json::array());
      for (const auto& part : parts) {
        const std::string path = part["$ref"];
        self(self, schemas[path.substr(path.rfind('/') + 1)]);
      }
    };
    fill(fill, schemas[name]);
    EXPECT_GT(body.size(), 30u) << line;
    EXPECT_EQ(schemas[name]["unevaluatedProperties"], false) << "as the server has it";
    body["prompt"] = "a";
    EXPECT_THAT(server.ask(line, "", body.dump()), Not(HasSubstr("unknown_parameter"))) << line;
  }
}

// A client may fill its form with them and send them all.
TEST(Api, TakesItsDefaultsBack) {
  using Adapt = std::function<void(Backend&)>;
  const Adapt layered = [](Backend& b) { b.info.layers = {.drawn = 4, .most = 8}; };
  const Adapt others[] = {[](Backend&) {}, layered,
                          [](Backend& b) { b.info.guidance_kind = GuidanceKind::kNone; },
                          [](Backend& b) { b.info.width = b.info.height = 4096; },
                          [](Backend& b) { b.info.steps = 300; }};
  for (const auto& adapt : others) {
    FakeEngine engine(adapt);
    const Server server(engine);
    auto wish = json_of(server.ask("GET /v1/capabilities"))["defaults"];
    EXPECT_GE(wish.size(), 7u);
    EXPECT_EQ(wish.contains("layers"), engine.backend().info.layers.most > 0) << wish;
    wish["prompt"] = "a";
    const auto job = server.ask("POST /v1/jobs", "", wish.dump());
    EXPECT_EQ(status_of(job), 202) << job;
    EXPECT_FALSE(json_of(job).contains("warnings")) << job;
    const auto taken = json_of(job)["request"];
    for (const auto& [field, value] : wish.items()) EXPECT_EQ(taken[field], value) << field;
  }
}

TEST(Api, CountsWhatItDoes) {
  FakeEngine engine;
  const Server server(engine);
  server.ask("POST /v1/images/generations", "", kSmall);
  const auto text = server.ask("GET /metrics");
  EXPECT_THAT(text, HasSubstr("Content-Type: text/plain; version=0.0.4"));
  EXPECT_THAT(text, HasSubstr("braid_requests_total{outcome=\"done\"} 1\n"));
  EXPECT_THAT(text, HasSubstr("braid_step_seconds_count 4\n"));
  EXPECT_THAT(text, Not(HasSubstr("braid_memory_bytes{device=\"host\"} 0\n")));
  EXPECT_THAT(text, HasSubstr("braid_stage_seconds_count{stage=\"denoise\"} 1\n"));
  EXPECT_EQ(text.back(), '\n');
}

// RFC 9110, 13.1.2
TEST(Api, ComparesTagsOfItsPageWeakly) {
  FakeEngine engine;
  const Server server(engine);
  const auto page = server.ask("GET /page.js");
  const auto begin = page.find("etag: ") + 6;
  const auto tag = page.substr(begin, page.find('\r', begin) - begin);
  const auto status = [&](const std::string& tags) {
    return status_of(server.ask("GET /page.js", "if-none-match: " + tags + "\r\n"));
  };
  for (const auto& same :
       {tag, "W/" + tag, std::string("*"), "\"a\", " + tag, "W/\"a,b\",W/" + tag + " , \"c\""})
    EXPECT_EQ(status(same), 304) << same;
  const auto bare = tag.substr(1, tag.size() - 2);
  for (const auto& other : {std::string("\"a\""), bare, "\"" + bare, "\"" + bare + "0\"",
                            std::string("\"*\""), std::string("W/")})
    EXPECT_EQ(status(other), 200) << other;
}

TEST(Api, ServesItsPageWithAStrictPolicy) {
  FakeEngine engine;
  const Server server(engine, {.key = "secret"});
  const auto page = server.ask("GET /");
  EXPECT_EQ(status_of(page), 200) << "the page asks for the key itself";
  EXPECT_THAT(page, HasSubstr("content-security-policy: default-src 'none'"));
  EXPECT_THAT(page, Not(HasSubstr("<style")));
  EXPECT_THAT(page, Not(HasSubstr("onclick")));
  const auto begin = page.find("etag: ") + 6;
  const auto tag = page.substr(begin, page.find('\r', begin) - begin);
  const auto same = server.ask("GET /", "if-none-match: " + tag + "\r\n");
  EXPECT_EQ(status_of(same), 304);
  EXPECT_THAT(same, Not(HasSubstr("Content-Length"))) << "it would be taken for the page's";
  for (const auto& file : page_files()) {
    const auto answer = server.ask("GET /" + std::string(file.name));
    const bool is_page = file.name != "index.html" && file.name != "openapi.json";
    EXPECT_EQ(status_of(answer) == 200, is_page) << file.name;
    EXPECT_EQ(answer.find("text/javascript") != answer.npos, file.name.ends_with(".js"));
  }
}

TEST(Api, CountsTokensOfPromptsWhileTheyAreTyped) {
  FakeEngine engine;
  const Server server(engine);
  const auto ask = [&](const std::string& json) { return server.ask("POST /v1/tokens", "", json); };
  const auto counted = json_of(ask(R"({"prompt": "abcdef", "prompt_2": "xy"})"));
  EXPECT_EQ(counted["prompt"], nlohmann::json::parse(R"([
      {"encoder": "short", "tokens": 6, "limit": 4, "cut": "end"},
      {"encoder": "long", "tokens": 2, "limit": 64, "cut": ""}])"));
  EXPECT_EQ(counted["negative_prompt"][0]["tokens"], 0);
  EXPECT_EQ(json_of(ask(R"({"max_sequence_length": 512})"))["prompt"][1]["limit"], 512);
  EXPECT_EQ(status_of(ask(R"({"max_sequence_length": 513})")), 400);
  EXPECT_EQ(status_of(ask(R"({"prompt": 3})")), 400);
  EXPECT_EQ(status_of(ask(R"({"prompt": "a", "model": "another"})")), 404);
  EXPECT_EQ(status_of(ask(R"({"prompt": "a", "seed": 1})")), 400) << "no such field";
}

TEST(Api, AnswersTheWebUisClients) {
  FakeEngine engine;
  const Server server(engine);
  const auto answer = server.ask("POST /sdapi/v1/txt2img", "",
                                 R"({"prompt": "a", "width": 20, "height": 16, "steps": 2,
                                     "cfg_scale": 1, "seed": 9, "sampler_name": "DPM++ 2M",
                                     "alwayson_scripts": {}, "n_iter": 2})");
  ASSERT_EQ(status_of(answer), 200) << answer;
  const auto json = json_of(answer);
  ASSERT_EQ(json["images"].size(), 2u);
  EXPECT_EQ(nlohmann::json::parse(json["info"].get<std::string>())["seed"], 9);
  EXPECT_EQ(json["parameters"]["width"], 16);
  EXPECT_EQ(json_of(server.ask("GET /sdapi/v1/progress"))["progress"], 0.0);
  EXPECT_EQ(json_of(server.ask("GET /sdapi/v1/sd-models"))[0]["title"], "demo");
  for (const auto* const list : {"upscalers", "latent-upscale-modes", "sd-vae"})  // SillyTavern's
    EXPECT_TRUE(json_of(server.ask(std::string("GET /sdapi/v1/") + list)).is_array()) << list;
  const nlohmann::json image = {{"image", json["images"][0]}};
  const auto info = json_of(server.ask("POST /sdapi/v1/png-info", "", image.dump()));
  EXPECT_EQ(info["items"]["prompt"], "a");
  EXPECT_EQ(status_of(server.ask("POST /sdapi/v1/png-info", "", R"({"image": "AAAA"})")), 400);
}

TEST(Api, RefusesWebUiSettingsThatAreNone) {
  FakeEngine engine;
  const Server server(engine);
  EXPECT_EQ(status_of(server.ask("POST /sdapi/v1/txt2img", "",
                                 R"({"prompt": "a", "steps": 1, "sampler_name": {}})")),
            400);
  for (const auto* const settings : {R"([])", R"("demo")", R"({"sd_model_checkpoint": {}})"}) {
    const auto body =
        R"({"prompt": "a", "steps": 1, "override_settings": )" + std::string(settings);
    const auto answer = server.ask("POST /sdapi/v1/txt2img", "", body + "}");
    EXPECT_EQ(status_of(answer), 400) << settings;
    EXPECT_THAT(answer, HasSubstr(R"("param":"override_settings")")) << settings;
  }
}

}  // namespace braid::serve::api_test

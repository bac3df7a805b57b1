// The description in openapi.json against what the server takes and answers.
#include <gmock/gmock.h>

#include <regex>

#include "base/base64.h"
#include "test_server.h"

namespace braid::serve::api_description_test {

void expect_described(const nlohmann::json& described, const nlohmann::json& object) {
  for (const auto& [key, value] : object.items()) {
    EXPECT_TRUE(described["properties"].contains(key)) << key;
    const auto& of_key = described["properties"].value(key, nlohmann::json::object());
    if (value.is_object()) expect_described(of_key, value);
    if (!value.is_array() || !of_key.contains("items") || !of_key["items"].contains("properties"))
      continue;
    for (const auto& element : value) expect_described(of_key["items"], element);
  }
}

TEST(ApiDescription, HasAllOfJobs) {
  FakeEngine engine(FakeEngine::Steps::kHeld);
  const Server server(engine);
  const auto schema = json_of(server.ask("GET /openapi.json"))["components"]["schemas"]["Job"];
  const auto picture = base64(encode_png(16, 16, std::vector<std::uint8_t>(16 * 16 * 3)));
  const auto post = [&](const std::string& prompt) -> std::string {
    const nlohmann::json wish = {
        {"prompt", prompt},  {"init", picture},       {"guidance", 0},     {"true_cfg", 2},
        {"cfg_until", 0.5},  {"strength", 0.3},       {"cfg_norm_cap", 1}, {"cfg_normalize", true},
        {"sampler", "heun"}, {"negative_prompt", "b"}};
    const auto job = json_of(server.ask("POST /v1/jobs", "", wish.dump()));
    expect_described(schema, job);
    EXPECT_EQ(job["pictures_in"].size(), 1u);
    return job["id"];
  };
  const auto first = post(std::string(300, 'a'));
  const auto last = post("fails");
  engine.wait_until_called(1);
  engine.release(1);
  expect_described(schema, json_of(server.ask("GET /v1/jobs/" + first)));
  expect_described(schema, json_of(server.ask("GET /v1/jobs/" + last)));
  engine.finish();
  for (const auto& id : {first, last}) server.ask("GET /v1/jobs/" + id + "/events");
  const auto done = json_of(server.ask("GET /v1/jobs/" + first));
  EXPECT_EQ(done["pictures"].size(), 1u);
  expect_described(schema, done);
  const auto failed = json_of(server.ask("GET /v1/jobs/" + last));
  EXPECT_TRUE(failed.contains("error"));
  expect_described(schema, failed);
  const auto listed = json_of(server.ask("GET /v1/jobs"))["jobs"];
  EXPECT_EQ(listed.size(), 2u);
  for (const auto& job : listed) expect_described(schema, job);
}

TEST(ApiDescription, SaysThatABodyMayComeTooSlowly) {
  FakeEngine engine;
  const Server server(engine);
  const auto paths = json_of(server.ask("GET /openapi.json"))["paths"];
  for (const auto& [path, methods] : paths.items())
    for (const auto& [method, operation] : methods.items()) {
      if (!operation.is_object()) continue;
      EXPECT_EQ(operation.contains("requestBody"), operation["responses"].contains("408")) << path;
    }
}

TEST(ApiDescription, HasAllOfCapabilities) {
  FakeEngine engine;
  const Server server(engine);
  const auto description = json_of(server.ask("GET /openapi.json"));
  const auto told = json_of(server.ask("GET /v1/capabilities"));
  expect_described(description["components"]["schemas"]["Capabilities"], told);
  EXPECT_TRUE(told["pictures_in"].contains("controlnet_fills_in"));
}

TEST(ApiDescription, HasTheBoundsOfNumbersAndNames) {
  FakeEngine engine;
  const Server server(engine);
  const auto description = json_of(server.ask("GET /openapi.json"));
  const auto& wish = description["components"]["schemas"]["Wish"]["properties"];
  EXPECT_EQ(wish["shift"]["exclusiveMinimum"], 0);
  const auto& with_pictures = description["components"]["schemas"]["PictureOptions"]["properties"];
  EXPECT_EQ(with_pictures["resolution"]["minimum"], 1);
  EXPECT_EQ(wish["sigmas"]["oneOf"][0]["exclusiveMinimum"], 0) << "a number alone";
  const auto status = [&](const std::string& field, const nlohmann::json& value) {
    nlohmann::json body = {{"prompt", "a"}};
    body[field] = value;
    return status_of(server.ask("POST /v1/jobs", "", body.dump()));
  };
  EXPECT_EQ(status("sigmas", 0.5), 202);
  EXPECT_EQ(status("resolution", 0), 400);
  for (const std::string field : {"user", "safety_identifier", "sampler", "schedule"}) {
    const std::size_t most = wish[field]["maxLength"];
    const bool is_of_any_words = field == "user" || field == "safety_identifier";
    EXPECT_EQ(status(field, std::string(most, 'a')), is_of_any_words ? 202 : 400) << field;
    EXPECT_EQ(status(field, std::string(most + 1, 'a')), 400) << field;
  }
  EXPECT_EQ(wish["model"]["maxLength"], 1000);
  const std::regex seed(wish["seed"]["oneOf"][1]["pattern"].get<std::string>());
  for (const std::string text : {"0", "007", "9999999999999999999", "18446744073709551615"}) {
    EXPECT_TRUE(std::regex_match(text, seed)) << text;
    EXPECT_EQ(status("seed", text), 202) << text;
  }
  for (const std::string text :
       {"", "-1", "1.5", "18446744073709551616", "100000000000000000000"}) {
    EXPECT_FALSE(std::regex_match(text, seed)) << text;
    EXPECT_EQ(status("seed", text), 400) << text;
  }
  for (const std::string path : {"interrogate", "train/embedding"})
    EXPECT_TRUE(
        description["paths"]["/sdapi/v1/" + path]["post"]["responses"]["422"].contains("content"))
        << path;
}

// Generators of clients stop at lists of what is not said, and at answers that are only null.
// Parameters of links are texts in OpenAPI 3.1's schema.
void expect_readable(const nlohmann::json& part, const std::string& place) {
  const auto has = [&](const char* key) { return part.is_object() && part.contains(key); };
  const bool is_list = has("type") && part["type"] == "array";
  EXPECT_TRUE(!is_list || has("items")) << place;
  const bool is_answer = place.ends_with("/application/json/schema");
  EXPECT_TRUE(!is_answer || !has("type") || part["type"] != "null") << place;
  for (const auto& [key, value] : part.items()) {
    EXPECT_TRUE(value.is_string() || place.find("/links/") == std::string::npos ||
                !place.ends_with("/parameters"))
        << place << "/" << key;
    if (value.is_structured()) expect_readable(value, place + "/" + key);
  }
}

TEST(ApiDescription, CanBeReadByGeneratorsOfClients) {
  FakeEngine engine;
  const Server server(engine);
  expect_readable(json_of(server.ask("GET /openapi.json")), "");
}

TEST(ApiDescription, SaysWhichFieldsOfTokensMayBeNull) {
  FakeEngine engine;
  const Server server(engine);
  const auto path = json_of(server.ask("GET /openapi.json"))["paths"]["/v1/tokens"];
  const auto& content = path["post"]["requestBody"]["content"]["application/json"];
  for (const auto& [field, schema] : content["schema"]["properties"].items()) {
    nlohmann::json body = {{"prompt", "a"}};
    body[field] = nullptr;
    const bool is_taken = status_of(server.ask("POST /v1/tokens", "", body.dump())) == 200;
    EXPECT_EQ(is_taken, schema["type"].is_array() && schema["type"].back() == "null") << field;
  }
}

}  // namespace braid::serve::api_description_test

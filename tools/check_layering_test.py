"""The layering check finds what is planted, and the tree itself is clean."""

import unittest
from pathlib import Path

import check_layering


def problems(**files):
    """Keys: path with / written as __ and . as _dot_; values: text."""
    return check_layering.check({k.replace("__", "/").replace("_dot_", "."): v for k, v in files.items()})


class Includes(unittest.TestCase):
    def test_allowed_dependency_passes(self):
        self.assertEqual(
            [],
            problems(
                base__ids_dot_h="",
                rendezvous__membership__membership_dot_h='#include "base/ids.h"\n#include <vector>\n',
                rendezvous__server__driver_dot_h='#include "rendezvous/membership/membership.h"\n',
            ),
        )

    def test_upward_dependency_is_found(self):
        found = problems(launcher__job__job_dot_h="", base__ids_dot_h='\n#include "launcher/job/job.h"\n')
        self.assertEqual(1, len(found))
        self.assertIn('base/ids.h:2: includes "launcher/job/job.h"', found[0])

    def test_pure_machine_may_not_see_all_of_base(self):
        self.assertEqual(1, len(problems(rendezvous__membership__membership_dot_cc='#include "base/clock.h"\n')))

    def test_pure_folder_has_no_threads_sockets_files_or_logs(self):
        for pure in ("rendezvous__membership__membership_dot_cc", "worker_runtime__negotiation__coordinator_dot_cc"):
            for header in (
                "<thread>",
                "<mutex>",
                "<sys/socket.h>",
                "<unistd.h>",
                "<fstream>",
                "<cstdio>",
                "<chrono>",
                '"absl/synchronization/mutex.h"',
                '"absl/time/clock.h"',
                '"base/logging.h"',
                '"base/env.h"',
            ):
                self.assertEqual(1, len(problems(**{pure: f"#include {header}\n"})), header)
            allowed = '#include <vector>\n#include "absl/time/time.h"\n#include "base/status_macros.h"\n'
            self.assertEqual([], problems(**{pure: allowed}))
        self.assertEqual([], problems(rendezvous__membership__membership_test_dot_cc="#include <thread>\n"))

    def test_generated_headers_count(self):
        self.assertEqual(1, len(problems(rendezvous__membership__membership_dot_cc='#include "proto/agent.pb.h"\n')))

    def test_collectives_never_on_rendezvous(self):
        self.assertEqual(
            1, len(problems(collectives__gloo__gloo_dot_cc='#include "rendezvous/client/rendezvous_client.h"\n'))
        )

    def test_backend_never_on_another(self):
        self.assertEqual(1, len(problems(collectives__shm__shm_dot_cc='#include "collectives/gloo/gloo_backend.h"\n')))

    def test_tests_may_use_their_subsystem_and_shared_support_only(self):
        self.assertEqual(
            [],
            problems(
                collectives__conformance_test_dot_cc='#include "collectives/gloo/gloo_backend.h"\n'
                '#include "tests/support/sim_clock.h"\n'
            ),
        )
        self.assertEqual(1, len(problems(collectives__conformance_test_dot_cc='#include "launcher/job/job.h"\n')))

    def test_product_may_not_use_test_code(self):
        self.assertEqual(1, len(problems(launcher__job__job_dot_cc='#include "tests/support/sim_clock.h"\n')))

    def test_third_party_stays_in_its_folder(self):
        self.assertEqual([], problems(collectives__gloo__gloo_dot_cc="#include <gloo/context.h>\n"))
        self.assertEqual(1, len(problems(worker_runtime__engine__engine_dot_cc="#include <gloo/context.h>\n")))

    def test_folder_without_rule_is_found(self):
        self.assertEqual(
            1,
            len(
                problems(
                    base__ids_dot_h="",
                    tools__bench_dot_cc='#include "base/ids.h"\n',
                    worker_runtime__other_dot_cc='#include "base/ids.h"\n',
                )
            ),
        )


def in_namespace(name, text):
    return f"namespace {name} {{\n{text}\n}}  // namespace {name}\n"


class Names(unittest.TestCase):
    def test_two_types_of_one_name_are_found(self):
        found = problems(
            rendezvous__server__plan_dot_h=in_namespace("hvd::rendezvous::server", "struct Machine {\n};"),
            rendezvous__server__machine_driver_dot_h=in_namespace(
                "hvd::rendezvous::server", "\nclass Machine final : Base {\n};"
            ),
        )
        self.assertEqual(1, len(found))
        self.assertIn(
            "rendezvous/server/machine_driver.h:3: hvd::rendezvous::server::Machine is another one in rendezvous/server/plan.h:2",
            found[0],
        )

    def test_two_functions_of_one_name_are_found(self):
        found = problems(
            base__a_dot_h=in_namespace("hvd", "int PortOf(int fd);"),
            base__b_dot_cc=in_namespace("hvd", "long PortOf(int fd) {\n}"),
        )
        self.assertEqual(1, len(found))
        self.assertIn("base/b.cc:2: hvd::PortOf is another one in base/a.h:2", found[0])

    def test_a_function_and_its_definition_are_one(self):
        self.assertEqual(
            [],
            problems(
                base__a_dot_h=in_namespace("hvd", "int PortOf(int fd);\nint PortOf(const Fd& fd);"),
                base__b_dot_cc='#include "base/a.h"\n' + in_namespace("hvd", "int PortOf(int fd) {\n}"),
            ),
        )

    def test_declarations_nested_types_and_what_no_other_file_sees_may_share_a_name(self):
        self.assertEqual(
            [],
            problems(
                base__a_dot_h=in_namespace("hvd", "class A {\n  struct Item {\n  };\n};\nclass B;"),
                base__b_dot_h=in_namespace("hvd", "class B {\n  struct Item;\n};"),
                base__b_dot_cc=in_namespace("hvd", "namespace {\nclass A {\n};\n}  // namespace\nstruct B::Item {\n};"),
                base__os__a_dot_h=in_namespace("hvd::os", "class A {\n};"),
                base__a_test_dot_cc=in_namespace("hvd", "class A {\n};"),
            ),
        )


class Namespaces(unittest.TestCase):
    def test_a_folder_has_its_own(self):
        self.assertEqual(
            [],
            problems(
                base__a_dot_h=in_namespace("hvd", ""),
                base__os__b_dot_h=in_namespace("hvd::os", ""),
                agent__testing__c_dot_cc=in_namespace("hvd::agent", ""),
                tests__d_dot_h=in_namespace("hvd", ""),
            ),
        )
        found = problems(base__os__b_dot_h=in_namespace("hvd", "class B {\n};"))
        self.assertEqual(["base/os/b.h:1: namespace hvd in a folder whose namespace is hvd::os"], found)

    def test_another_folders_types_may_be_declared(self):
        self.assertEqual([], problems(base__net__a_dot_h=in_namespace("hvd::os", "\nclass A;  // base/os/a.h\n")))


class Titles(unittest.TestCase):
    def test_a_header_is_named_after_one_of_its_types(self):
        self.assertEqual(
            [],
            problems(
                base__reduce_dot_h=in_namespace("hvd", "class Reducer {\n};"),
                base__siphash_dot_h=in_namespace("hvd", "struct Key {\n};\nclass SipHash {\n};"),
                base__ids_of_hosts_dot_h=in_namespace("hvd", "struct Anything {\n};"),
            ),
        )
        found = problems(base__job_router_dot_h=in_namespace("hvd", "class FrontDoor {\n};\nstruct Key {\n};"))
        self.assertEqual(["base/job_router.h: none of its types bears its name: FrontDoor, Key"], found)


class Folders(unittest.TestCase):
    def test_a_folder_of_too_many_sources_is_found(self):
        sources = {f"base__a{i}_dot_h": "" for i in range(check_layering.FOLDER_LIMIT + 1)}
        self.assertEqual(1, len(problems(**sources)))
        sources.pop("base__a7_dot_h")
        self.assertEqual([], problems(base__b_test_dot_cc="", **sources))


class Cycles(unittest.TestCase):
    def test_files_in_a_circle_are_found(self):
        found = problems(base__a_dot_h='#include "base/b.h"\n', base__b_dot_h='#include "base/a.h"\n')
        self.assertEqual(["files include one another in a circle: base/a.h -> base/b.h -> base/a.h"], found)

    def test_folders_in_a_circle_are_found(self):
        found = check_layering.check_cycles(
            {
                "launcher/cli/cli.h": '#include "launcher/spawn/spawn.h"\n',
                "launcher/spawn/spawn.h": "",
                "launcher/spawn/other.h": '#include "launcher/cli/options.h"\n',
                "launcher/cli/options.h": "",
            }
        )
        self.assertEqual(
            ["folders include one another in a circle: launcher/cli -> launcher/spawn -> launcher/cli"], found
        )


class Patterns(unittest.TestCase):
    def test_getenv_only_in_base_env(self):
        self.assertEqual([], problems(base__env_dot_cc='getenv("A");'))
        self.assertEqual(1, len(problems(launcher__job__job_dot_cc='std::getenv("A");')))

    def test_sleep_only_in_base_clock_tests_included(self):
        self.assertEqual([], problems(base__clock_dot_cc="absl::SleepFor(d);"))
        for text in (
            "absl::SleepFor(d);",
            "std::this_thread::sleep_for(d);",
            "usleep(3);",
            "  sleep(1);",
            "::sleep(1);",
        ):
            self.assertEqual(1, len(problems(launcher__job__job_test_dot_cc=text)), text)

    def test_clock_only_in_base_clock(self):
        self.assertEqual(1, len(problems(launcher__job__job_dot_cc="auto t = absl::Now();")))
        self.assertEqual(1, len(problems(launcher__job__job_dot_cc="auto t = std::chrono::steady_clock::now();")))

    def test_nobody_waits_by_the_wall_clock_tests_included(self):
        for text in (
            "mu.AwaitWithTimeout(c, d);",
            "mu_.AwaitWithDeadline(c, t);",
            "cv.WaitWithTimeout(&mu, d);",
            "n.WaitForNotificationWithTimeout(d);",
            "std::chrono::system_clock::time_point t;",
        ):
            self.assertEqual(1, len(problems(launcher__job__job_test_dot_cc=text)), text)
        for text in ("clock_.AwaitWithDeadline(mu_, c, t);", "Clock::Real().AwaitWithDeadline(mu_, c, t);"):
            self.assertEqual([], problems(launcher__job__job_dot_cc=text), text)

    def test_durations_have_one_form(self):
        self.assertEqual(1, len(problems(launcher__job__job_dot_cc="absl::FormatDuration(d);")))

    def test_comments_and_strings_are_not_code(self):
        self.assertEqual(
            [], problems(launcher__job__job_dot_cc='// never getenv("A")\n/* sleep(1) */\nauto a = "sleep(1)";\n')
        )
        raw = 'auto a = R"(\nsay("x") or "y"\nsleep(1)\n)";\n'
        self.assertEqual([], problems(launcher__job__job_dot_cc=raw))
        found = problems(launcher__job__job_dot_cc=raw + "sleep(1);\n")
        self.assertEqual(["launcher/job/job.cc:5"], [line.rpartition(": ")[0] for line in found])


class Tree(unittest.TestCase):
    def test_the_tree_is_clean(self):
        # The script's real place, not its link in Bazel's runfiles: the tree is around it.
        files = check_layering.read_sources(Path(check_layering.__file__).resolve().parent.parent)
        self.assertGreater(len(files), 10)
        self.assertEqual([], check_layering.check(files))


if __name__ == "__main__":
    unittest.main()

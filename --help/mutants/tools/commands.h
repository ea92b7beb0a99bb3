/* The commands of the `onelaunch` program. Each takes its own arguments (argv[0] is "onelaunch NAME", for messages) and
 * returns the exit code of the process: see enum cli_exit in cli.h. */
#ifndef ONELAUNCH_TOOLS_COMMANDS_H
#define ONELAUNCH_TOOLS_COMMANDS_H

int cmd_rates(int argc, char **argv);
int cmd_step(int argc, char **argv);
int cmd_check(int argc, char **argv);
int cmd_parity(int argc, char **argv);
int cmd_digest(int argc, char **argv);
int cmd_explain(int argc, char **argv);
int cmd_compare(int argc, char **argv);
int cmd_devices(int argc, char **argv);
int cmd_cache(int argc, char **argv);
int cmd_bench(int argc, char **argv);

#endif

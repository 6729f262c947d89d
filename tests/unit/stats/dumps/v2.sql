BEGIN TRANSACTION;
CREATE TABLE attempts (
	run_id TEXT NOT NULL, 
	attempt BIGINT NOT NULL, 
	started DOUBLE NOT NULL, 
	ended DOUBLE, 
	outcome TEXT, 
	resumed_from BIGINT, 
	epoch BIGINT NOT NULL, 
	env_steps BIGINT NOT NULL, 
	hostname TEXT NOT NULL, 
	pid BIGINT NOT NULL, 
	versions TEXT NOT NULL, 
	PRIMARY KEY (run_id, attempt)
)
 WITHOUT ROWID

;
INSERT INTO "attempts" VALUES('run-1',1,1700000000.0,NULL,NULL,NULL,0,0,'machine',1,'{"python": "3.11"}');
CREATE TABLE checkpoints (
	run_id TEXT NOT NULL, 
	name TEXT NOT NULL, 
	after_epoch BIGINT NOT NULL, 
	epoch BIGINT NOT NULL, 
	env_steps BIGINT NOT NULL, 
	optimizer_steps BIGINT NOT NULL, 
	seconds DOUBLE NOT NULL, 
	wall_time DOUBLE NOT NULL, 
	checkpoint_id TEXT NOT NULL, 
	uri TEXT NOT NULL, 
	kind TEXT NOT NULL, 
	size_bytes BIGINT, 
	metrics TEXT, 
	about TEXT, 
	PRIMARY KEY (run_id, name)
)
 WITHOUT ROWID

;
CREATE TABLE episodes (
	run_id TEXT NOT NULL, 
	after_epoch BIGINT NOT NULL, 
	epoch BIGINT NOT NULL, 
	env_steps BIGINT NOT NULL, 
	optimizer_steps BIGINT NOT NULL, 
	sequence BIGINT NOT NULL, 
	seconds DOUBLE NOT NULL, 
	env_index BIGINT, 
	return DOUBLE, 
	nonfinite TEXT, 
	length BIGINT, 
	lesson TEXT, 
	about TEXT, 
	PRIMARY KEY (run_id, after_epoch, epoch, env_steps, optimizer_steps, sequence)
)
 WITHOUT ROWID

;
INSERT INTO "episodes" VALUES('run-1',0,0,5,1,0,0.05,0,1.5,NULL,7,NULL,NULL);
INSERT INTO "episodes" VALUES('run-1',0,0,5,1,1,0.05,1,1.5,NULL,7,NULL,NULL);
CREATE TABLE epochs (
	run_id TEXT NOT NULL, 
	epoch BIGINT NOT NULL, 
	attempt BIGINT NOT NULL, 
	env_steps BIGINT NOT NULL, 
	optimizer_steps BIGINT NOT NULL, 
	episodes BIGINT NOT NULL, 
	policy_version BIGINT NOT NULL, 
	seconds DOUBLE NOT NULL, 
	wall_time DOUBLE NOT NULL, 
	PRIMARY KEY (run_id, epoch)
)
 WITHOUT ROWID

;
INSERT INTO "epochs" VALUES('run-1',1,1,10,2,1,1,0.1,1700000000.0);
CREATE TABLE evaluation_tasks (
    run_id TEXT NOT NULL, checkpoint_id TEXT NOT NULL, suite TEXT NOT NULL, seed BIGINT NOT NULL,
    state TEXT NOT NULL, uri TEXT NOT NULL, created DOUBLE PRECISION NOT NULL, claimed_by TEXT,
    lease_until DOUBLE PRECISION, tries BIGINT NOT NULL, finished DOUBLE PRECISION, error TEXT,
    PRIMARY KEY (run_id, checkpoint_id, suite, seed)
)
 WITHOUT ROWID;
INSERT INTO "evaluation_tasks" VALUES('run-1','run-1/step-000000000010@00','training',5,'waiting','file:///runs/first',1700000000.0,NULL,NULL,0,NULL,NULL);
CREATE TABLE evaluations (
	run_id TEXT NOT NULL, 
	name TEXT NOT NULL, 
	after_epoch BIGINT NOT NULL, 
	epoch BIGINT NOT NULL, 
	env_steps BIGINT NOT NULL, 
	optimizer_steps BIGINT NOT NULL, 
	sequence BIGINT NOT NULL, 
	seconds DOUBLE NOT NULL, 
	wall_time DOUBLE NOT NULL, 
	score DOUBLE, 
	nonfinite TEXT, 
	scores TEXT NOT NULL, 
	episodes BIGINT NOT NULL, 
	checkpoint TEXT, 
	about TEXT, 
	PRIMARY KEY (run_id, after_epoch, epoch, env_steps, optimizer_steps, name, sequence)
)
 WITHOUT ROWID

;
INSERT INTO "evaluations" VALUES('run-1','greedy',0,1,10,2,0,0.1,1700000000.0,0.5,NULL,'{"mean": 0.5}',3,NULL,NULL);
CREATE TABLE events (
	run_id TEXT NOT NULL, 
	after_epoch BIGINT NOT NULL, 
	epoch BIGINT NOT NULL, 
	env_steps BIGINT NOT NULL, 
	optimizer_steps BIGINT NOT NULL, 
	sequence BIGINT NOT NULL, 
	seconds DOUBLE NOT NULL, 
	wall_time DOUBLE NOT NULL, 
	who TEXT NOT NULL, 
	what TEXT NOT NULL, 
	why TEXT NOT NULL, 
	about TEXT, 
	PRIMARY KEY (run_id, after_epoch, epoch, env_steps, optimizer_steps, sequence)
)
 WITHOUT ROWID

;
INSERT INTO "events" VALUES('run-1',0,1,10,2,0,0.1,1700000000.0,'hook','noticed','it was time',NULL);
CREATE TABLE games (
	run_id TEXT NOT NULL, 
	after_epoch BIGINT NOT NULL, 
	epoch BIGINT NOT NULL, 
	env_steps BIGINT NOT NULL, 
	optimizer_steps BIGINT NOT NULL, 
	sequence BIGINT NOT NULL, 
	seconds DOUBLE NOT NULL, 
	wall_time DOUBLE NOT NULL, 
	players TEXT NOT NULL, 
	winner TEXT, 
	moves BIGINT, 
	opening TEXT, 
	replay TEXT, 
	about TEXT, 
	PRIMARY KEY (run_id, after_epoch, epoch, env_steps, optimizer_steps, sequence)
)
 WITHOUT ROWID

;
INSERT INTO "games" VALUES('run-1',0,0,5,1,0,0.05,1700000000.0,'["a", "b"]','a',9,NULL,NULL,NULL);
CREATE TABLE hook_costs (
	run_id TEXT NOT NULL, 
	attempt BIGINT NOT NULL, 
	hook TEXT NOT NULL, 
	event TEXT NOT NULL, 
	calls BIGINT NOT NULL, 
	total_ns BIGINT NOT NULL, 
	max_ns BIGINT NOT NULL, 
	timed_calls BIGINT NOT NULL, 
	PRIMARY KEY (run_id, attempt, hook, event)
)
 WITHOUT ROWID

;
CREATE TABLE hook_failures (
	run_id TEXT NOT NULL, 
	attempt BIGINT NOT NULL, 
	hook TEXT NOT NULL, 
	count BIGINT NOT NULL, 
	last_error TEXT NOT NULL, 
	last_event TEXT NOT NULL, 
	is_disabled BOOLEAN NOT NULL, 
	PRIMARY KEY (run_id, attempt, hook)
)
 WITHOUT ROWID

;
CREATE TABLE lineage (
	run_id TEXT NOT NULL, 
	child TEXT NOT NULL, 
	parent TEXT NOT NULL, 
	relation TEXT NOT NULL, 
	after_epoch BIGINT NOT NULL, 
	epoch BIGINT NOT NULL, 
	env_steps BIGINT NOT NULL, 
	optimizer_steps BIGINT NOT NULL, 
	seconds DOUBLE NOT NULL, 
	wall_time DOUBLE NOT NULL, 
	about TEXT, 
	PRIMARY KEY (run_id, child, parent, relation)
)
 WITHOUT ROWID

;
CREATE TABLE points (
	series_id BIGINT NOT NULL, 
	after_epoch BIGINT NOT NULL, 
	epoch BIGINT NOT NULL, 
	env_steps BIGINT NOT NULL, 
	optimizer_steps BIGINT NOT NULL, 
	sequence BIGINT NOT NULL, 
	seconds DOUBLE NOT NULL, 
	value DOUBLE, 
	nonfinite TEXT, 
	PRIMARY KEY (series_id, after_epoch, epoch, env_steps, optimizer_steps, sequence)
)
 WITHOUT ROWID

;
INSERT INTO "points" VALUES(1,0,0,0,0,0,0.0,1.0,NULL);
INSERT INTO "points" VALUES(2,0,0,5,1,0,0.05,1.5,NULL);
INSERT INTO "points" VALUES(2,0,0,5,1,1,0.05,2.5,NULL);
INSERT INTO "points" VALUES(3,0,0,5,1,0,0.05,NULL,'nan');
INSERT INTO "points" VALUES(4,0,1,10,2,0,0.1,NULL,'inf');
INSERT INTO "points" VALUES(5,0,1,10,2,0,0.1,1.0,NULL);
CREATE TABLE ratings (
	run_id TEXT NOT NULL, 
	player TEXT NOT NULL, 
	after_epoch BIGINT NOT NULL, 
	epoch BIGINT NOT NULL, 
	env_steps BIGINT NOT NULL, 
	optimizer_steps BIGINT NOT NULL, 
	sequence BIGINT NOT NULL, 
	seconds DOUBLE NOT NULL, 
	wall_time DOUBLE NOT NULL, 
	rating DOUBLE, 
	nonfinite TEXT, 
	deviation DOUBLE, 
	games BIGINT, 
	PRIMARY KEY (run_id, after_epoch, epoch, env_steps, optimizer_steps, player, sequence)
)
 WITHOUT ROWID

;
INSERT INTO "ratings" VALUES('run-1','a',0,1,10,2,0,0.1,1700000000.0,1501.0,NULL,NULL,NULL);
CREATE TABLE replays (
	run_id TEXT NOT NULL, 
	name TEXT NOT NULL, 
	after_epoch BIGINT NOT NULL, 
	epoch BIGINT NOT NULL, 
	env_steps BIGINT NOT NULL, 
	optimizer_steps BIGINT NOT NULL, 
	seconds DOUBLE NOT NULL, 
	wall_time DOUBLE NOT NULL, 
	uri TEXT NOT NULL, 
	return DOUBLE, 
	nonfinite TEXT, 
	length BIGINT, 
	about TEXT, 
	PRIMARY KEY (run_id, name)
)
 WITHOUT ROWID

;
CREATE TABLE runs (
	run_id TEXT NOT NULL, 
	name TEXT NOT NULL, 
	recipe TEXT, 
	seed BIGINT, 
	config TEXT, 
	created DOUBLE NOT NULL, 
	status TEXT NOT NULL, 
	tags TEXT NOT NULL, 
	PRIMARY KEY (run_id)
)
 WITHOUT ROWID

;
INSERT INTO "runs" VALUES('run-1','first',NULL,1,'{"a": 1}',1700000000.0,'running','[]');
CREATE TABLE schema_info (
	name TEXT NOT NULL, 
	value BIGINT NOT NULL, 
	PRIMARY KEY (name)
);
INSERT INTO "schema_info" VALUES('version',2);
INSERT INTO "schema_info" VALUES('flushes',5);
CREATE TABLE series (
	series_id INTEGER NOT NULL, 
	run_id TEXT NOT NULL, 
	"key" TEXT NOT NULL, 
	hook TEXT NOT NULL, 
	event TEXT NOT NULL, 
	PRIMARY KEY (series_id), 
	UNIQUE (run_id, "key", hook, event)
);
INSERT INTO "series" VALUES(1,'run-1','lr','learner','epoch_start');
INSERT INTO "series" VALUES(2,'run-1','loss','learner','minibatch_end');
INSERT INTO "series" VALUES(3,'run-1','noise','learner','minibatch_end');
INSERT INTO "series" VALUES(4,'run-1','return/max','learner','epoch_end');
INSERT INTO "series" VALUES(5,'run-1','return/mean','learner','epoch_end');
CREATE TABLE superseded_checkpoints (
	superseded_by BIGINT NOT NULL, 
	run_id TEXT NOT NULL, 
	name TEXT NOT NULL, 
	after_epoch BIGINT NOT NULL, 
	epoch BIGINT NOT NULL, 
	env_steps BIGINT NOT NULL, 
	optimizer_steps BIGINT NOT NULL, 
	seconds DOUBLE NOT NULL, 
	wall_time DOUBLE NOT NULL, 
	checkpoint_id TEXT NOT NULL, 
	uri TEXT NOT NULL, 
	kind TEXT NOT NULL, 
	size_bytes BIGINT, 
	metrics TEXT, 
	about TEXT, 
	PRIMARY KEY (superseded_by, run_id, name)
)
 WITHOUT ROWID

;
CREATE TABLE superseded_episodes (
	superseded_by BIGINT NOT NULL, 
	run_id TEXT NOT NULL, 
	after_epoch BIGINT NOT NULL, 
	epoch BIGINT NOT NULL, 
	env_steps BIGINT NOT NULL, 
	optimizer_steps BIGINT NOT NULL, 
	sequence BIGINT NOT NULL, 
	seconds DOUBLE NOT NULL, 
	env_index BIGINT, 
	return DOUBLE, 
	nonfinite TEXT, 
	length BIGINT, 
	lesson TEXT, 
	about TEXT, 
	PRIMARY KEY (superseded_by, run_id, after_epoch, epoch, env_steps, optimizer_steps, sequence)
)
 WITHOUT ROWID

;
CREATE TABLE superseded_epochs (
	superseded_by BIGINT NOT NULL, 
	run_id TEXT NOT NULL, 
	epoch BIGINT NOT NULL, 
	attempt BIGINT NOT NULL, 
	env_steps BIGINT NOT NULL, 
	optimizer_steps BIGINT NOT NULL, 
	episodes BIGINT NOT NULL, 
	policy_version BIGINT NOT NULL, 
	seconds DOUBLE NOT NULL, 
	wall_time DOUBLE NOT NULL, 
	PRIMARY KEY (superseded_by, run_id, epoch)
)
 WITHOUT ROWID

;
CREATE TABLE superseded_evaluations (
	superseded_by BIGINT NOT NULL, 
	run_id TEXT NOT NULL, 
	name TEXT NOT NULL, 
	after_epoch BIGINT NOT NULL, 
	epoch BIGINT NOT NULL, 
	env_steps BIGINT NOT NULL, 
	optimizer_steps BIGINT NOT NULL, 
	sequence BIGINT NOT NULL, 
	seconds DOUBLE NOT NULL, 
	wall_time DOUBLE NOT NULL, 
	score DOUBLE, 
	nonfinite TEXT, 
	scores TEXT NOT NULL, 
	episodes BIGINT NOT NULL, 
	checkpoint TEXT, 
	about TEXT, 
	PRIMARY KEY (superseded_by, run_id, after_epoch, epoch, env_steps, optimizer_steps, name, sequence)
)
 WITHOUT ROWID

;
CREATE TABLE superseded_events (
	superseded_by BIGINT NOT NULL, 
	run_id TEXT NOT NULL, 
	after_epoch BIGINT NOT NULL, 
	epoch BIGINT NOT NULL, 
	env_steps BIGINT NOT NULL, 
	optimizer_steps BIGINT NOT NULL, 
	sequence BIGINT NOT NULL, 
	seconds DOUBLE NOT NULL, 
	wall_time DOUBLE NOT NULL, 
	who TEXT NOT NULL, 
	what TEXT NOT NULL, 
	why TEXT NOT NULL, 
	about TEXT, 
	PRIMARY KEY (superseded_by, run_id, after_epoch, epoch, env_steps, optimizer_steps, sequence)
)
 WITHOUT ROWID

;
CREATE TABLE superseded_games (
	superseded_by BIGINT NOT NULL, 
	run_id TEXT NOT NULL, 
	after_epoch BIGINT NOT NULL, 
	epoch BIGINT NOT NULL, 
	env_steps BIGINT NOT NULL, 
	optimizer_steps BIGINT NOT NULL, 
	sequence BIGINT NOT NULL, 
	seconds DOUBLE NOT NULL, 
	wall_time DOUBLE NOT NULL, 
	players TEXT NOT NULL, 
	winner TEXT, 
	moves BIGINT, 
	opening TEXT, 
	replay TEXT, 
	about TEXT, 
	PRIMARY KEY (superseded_by, run_id, after_epoch, epoch, env_steps, optimizer_steps, sequence)
)
 WITHOUT ROWID

;
CREATE TABLE superseded_lineage (
	superseded_by BIGINT NOT NULL, 
	run_id TEXT NOT NULL, 
	child TEXT NOT NULL, 
	parent TEXT NOT NULL, 
	relation TEXT NOT NULL, 
	after_epoch BIGINT NOT NULL, 
	epoch BIGINT NOT NULL, 
	env_steps BIGINT NOT NULL, 
	optimizer_steps BIGINT NOT NULL, 
	seconds DOUBLE NOT NULL, 
	wall_time DOUBLE NOT NULL, 
	about TEXT, 
	PRIMARY KEY (superseded_by, run_id, child, parent, relation)
)
 WITHOUT ROWID

;
CREATE TABLE superseded_points (
	superseded_by BIGINT NOT NULL, 
	series_id BIGINT NOT NULL, 
	after_epoch BIGINT NOT NULL, 
	epoch BIGINT NOT NULL, 
	env_steps BIGINT NOT NULL, 
	optimizer_steps BIGINT NOT NULL, 
	sequence BIGINT NOT NULL, 
	seconds DOUBLE NOT NULL, 
	value DOUBLE, 
	nonfinite TEXT, 
	PRIMARY KEY (superseded_by, series_id, after_epoch, epoch, env_steps, optimizer_steps, sequence)
)
 WITHOUT ROWID

;
CREATE TABLE superseded_ratings (
	superseded_by BIGINT NOT NULL, 
	run_id TEXT NOT NULL, 
	player TEXT NOT NULL, 
	after_epoch BIGINT NOT NULL, 
	epoch BIGINT NOT NULL, 
	env_steps BIGINT NOT NULL, 
	optimizer_steps BIGINT NOT NULL, 
	sequence BIGINT NOT NULL, 
	seconds DOUBLE NOT NULL, 
	wall_time DOUBLE NOT NULL, 
	rating DOUBLE, 
	nonfinite TEXT, 
	deviation DOUBLE, 
	games BIGINT, 
	PRIMARY KEY (superseded_by, run_id, after_epoch, epoch, env_steps, optimizer_steps, player, sequence)
)
 WITHOUT ROWID

;
CREATE TABLE superseded_replays (
	superseded_by BIGINT NOT NULL, 
	run_id TEXT NOT NULL, 
	name TEXT NOT NULL, 
	after_epoch BIGINT NOT NULL, 
	epoch BIGINT NOT NULL, 
	env_steps BIGINT NOT NULL, 
	optimizer_steps BIGINT NOT NULL, 
	seconds DOUBLE NOT NULL, 
	wall_time DOUBLE NOT NULL, 
	uri TEXT NOT NULL, 
	return DOUBLE, 
	nonfinite TEXT, 
	length BIGINT, 
	about TEXT, 
	PRIMARY KEY (superseded_by, run_id, name)
)
 WITHOUT ROWID

;
CREATE TABLE tracker_cursors (
	run_id TEXT NOT NULL, 
	tracker TEXT NOT NULL, 
	cursor BIGINT NOT NULL, 
	wall_time DOUBLE NOT NULL, 
	PRIMARY KEY (run_id, tracker)
)
 WITHOUT ROWID

;
CREATE VIEW metrics AS
SELECT series.run_id, points.epoch, points.env_steps, points.optimizer_steps, points.seconds, series.hook,
       series.event, series.key, points.value, points.nonfinite, points.after_epoch, points.sequence
FROM points JOIN series ON series.series_id = points.series_id;
COMMIT;
